"""CEL of device selectors as each minor has it: `check` an expression, and `evaluate` it on devices."""
