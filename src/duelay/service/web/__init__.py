"""The web pages of the service: addresses, sessions and forms."""
