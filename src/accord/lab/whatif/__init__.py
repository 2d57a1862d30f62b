"""Look ahead on one's own levels, before any value is read: `accord whatif`."""
