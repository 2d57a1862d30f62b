"""What people read: text tables and figures."""
