"""What benchmarks share: data, timing, lines of results, tables; and the digests of draws.

The other rooms import from this one, and it imports from none of them.
"""
