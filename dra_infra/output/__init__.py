"""Safe output: the text of strangers escaped for each medium, secrets taken out, and formats of findings."""
