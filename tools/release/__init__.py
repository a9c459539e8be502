"""What a release consists of, built twice to the same bytes and tried: ``make release-check``."""
