"""What may be shown: the text of strangers made safe for each medium, secrets taken out, and formats of findings."""
