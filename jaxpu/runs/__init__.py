"""One engine for everything that has seeds."""
