"""Gates: what a batch must satisfy before the run goes on with it, stated as Great Expectations."""
