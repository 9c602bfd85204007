from tests import golden

print(f"wrote {len(list(golden.cases()))} results to {golden.write()}")
