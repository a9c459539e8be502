"""The components as a Pulumi package for all languages: TypeScript, Go, C#, Java and YAML."""
