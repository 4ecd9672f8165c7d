"""Ground floor: errors, processes, memory and disk, of use to every room."""
