"""What an API server does with an object: defaulting, dropping of gated fields, validation and admission."""
