"""Edit operations on a pool of entries (JERP Eq. 26 and 27): how they are written, and how they are carried out."""
