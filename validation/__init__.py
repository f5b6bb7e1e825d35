"""Long studies of what pairscale claims, with judges that its models do not assume; see docs/validation.md."""
