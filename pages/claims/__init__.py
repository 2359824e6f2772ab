"""Claims: is what the articles say true here?"""
