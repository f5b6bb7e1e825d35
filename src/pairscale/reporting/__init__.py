"""What people look at: pages and charts made of results."""
