"""Bundled data: see PROVENANCE.md."""
