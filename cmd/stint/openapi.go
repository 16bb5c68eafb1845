package main

import (
	"github.com/spf13/cobra"

	"github.com/stintd/stint/ingest/server"
)

func newOpenAPI() *cobra.Command {
	return &cobra.Command{
		Use:   "openapi",
		Short: "Prints the OpenAPI description of the service",
		Long: `Prints the OpenAPI 3.0 description of all calls of the service, with the types of what they take and give, and
an example of each. It is what a service answers at /openapi.json. Clients in other languages are made of it.`,
		Example: `  stint openapi > openapi.json`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(server.OpenAPI())
			return err
		},
	}
}
