from tests import golden

for function in golden.FUNCTIONS:
    print(f"wrote {golden.write(function)} results to {golden.path(function)}")
