"""How records are written: from bytes to rows."""
