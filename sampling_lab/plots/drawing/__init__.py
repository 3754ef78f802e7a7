"""What the pictures share: colours, labels, shapes and ticks."""
