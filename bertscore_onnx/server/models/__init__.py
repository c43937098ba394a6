"""The models that a server offers, and what one request chooses of them."""
