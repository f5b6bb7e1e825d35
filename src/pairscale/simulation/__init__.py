"""Studies with judges of known truth: how good is a ranking after how many comparisons, and how many will be needed?"""
