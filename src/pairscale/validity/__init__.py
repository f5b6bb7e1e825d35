"""People's scale of texts from a judge's ranking and a few answers of people: how far can the judge be trusted?"""
