"""What a worker and a replay have in common: rows that wait, the gate, and the messages that leave."""
