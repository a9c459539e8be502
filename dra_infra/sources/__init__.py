"""Where objects come from: files, charts, a revision of a repository, the head of a pull request."""
