"""SQL that runs: whatever the model writes is a query that SQLite can execute on the given tables."""

import sqlite3

import constrain

TABLES = """
CREATE TABLE city (name TEXT, country TEXT, population INTEGER);
CREATE TABLE river (name TEXT, length_km INTEGER);
"""
database = sqlite3.connect(":memory:")
database.executescript(TABLES)


def runs(query: str) -> bool:
    """Is it a query on these tables? ``EXPLAIN`` prepares it and changes nothing."""
    try:
        database.execute(f"EXPLAIN {query}")
    except sqlite3.Error:
        return False
    return True


# The grammar says what a query looks like and which names there are; the database knows which go together.
column = constrain.choice(["name", "country", "population", "length_km"])
table = constrain.choice(["city", "river"])
condition = constrain.regex(" WHERE ") + column + constrain.regex(" [<>=] [0-9]{1,6}")
query = constrain.regex("SELECT ") + column + constrain.regex(" FROM ") + table + condition
spec = query.where(runs)

model = constrain.load_model()
prompt = [{"role": "user", "content": f"{TABLES}\nOne SQL query: cities with more than 100000 people."}]
result = constrain.generate(model, prompt, spec, max_tokens=32, temperature=0.7, seed=0)
print(result.text)
print(result.stats.check_calls, "checks,", result.stats.backtracks, "times taken back")
assert spec.matches(result.text)
database.execute(result.text)
