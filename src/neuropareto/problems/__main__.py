"""``python -m neuropareto.problems`` prints the table of all problems in Markdown."""

from neuropareto.problems.catalogue import table

if __name__ == "__main__":
    print(table())
