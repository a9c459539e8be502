"""One comment of a review on a pull request of GitHub or a merge request of GitLab, kept up to date.

The only package that talks to a network on its own; nothing else of ours runs in its process.
"""
