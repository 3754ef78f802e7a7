"""What the explorer draws: tabs, captions and the figures behind them."""
