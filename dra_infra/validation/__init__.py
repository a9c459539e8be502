"""Rules of the server."""
