"""Posterior accuracy at equal model calls: patterns, and SQL on a fixed database.

    python benchmarks/quality/posterior_accuracy.py [--task sql,patterns] [--quick] [--items 30]

Eight outputs an item in every method, so about the same number of tokens through the model. *local*: each counts alike.
*importance*: weighted by their feasible mass. *rejection*: weighted, checks instead of masks. *smc*: they compete while
they grow. A query is right if the database answers it as the wanted one; a text for a pattern if it also has the wanted
beginning, which the spec doesn't enforce.
"""

from __future__ import annotations

import random
import re
import sqlite3
from contextlib import closing

from common import Item, Method, parser, population, run, several

import constrain

TABLES = """
CREATE TABLE customers (id INTEGER, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER, customer_id INTEGER, total INTEGER, status TEXT);
INSERT INTO customers VALUES (1,'Anna','Bern'),(2,'Ben','Oslo'),(3,'Carla','Bern'),(4,'Deniz','Rome');
INSERT INTO orders VALUES (1,1,40,'paid'),(2,1,15,'open'),(3,2,70,'paid'),(4,3,25,'open'),(5,3,90,'paid');
"""
COLUMNS = {"customers": ("id", "name", "city"), "orders": ("id", "customer_id", "total", "status")}
SQL = constrain.grammar(
    r"""
start: "SELECT " what " FROM " table (" WHERE " condition (" AND " condition)?)? ";"
what: "*" | "COUNT(*)" | ("SUM(" | "MAX(" | "MIN(" | "AVG(") column ")" | column (", " column)?
condition: column (" = " | " > " | " < ") value
value: NUMBER | TEXT
table: "customers" | "orders"
column: "id" | "name" | "city" | "customer_id" | "total" | "status"
NUMBER: /[0-9]{1,3}/
TEXT: /'[A-Za-z]{1,12}'/
""",
    syntax="lark",
)
QUESTIONS = (
    ("How many customers are there?", "SELECT COUNT(*) FROM customers;"),
    (
        "Which customers live in {city}? Give their names.",
        "SELECT name FROM customers WHERE city = '{city}';",
    ),
    ("In which city does {name} live?", "SELECT city FROM customers WHERE name = '{name}';"),
    ("What is the sum of the totals of all orders?", "SELECT SUM(total) FROM orders;"),
    ("How many orders are {status}?", "SELECT COUNT(*) FROM orders WHERE status = '{status}';"),
    ("List the ids of orders with a total above {n}.", "SELECT id FROM orders WHERE total > {n};"),
    (
        "What is the largest total of a {status} order?",
        "SELECT MAX(total) FROM orders WHERE status = '{status}';",
    ),
    ("List the names of all customers.", "SELECT name FROM customers;"),
)
PIECES = (
    (r"[A-Z]{2}", "two capital letters"),
    (r"\d{3}", "three digits"),
    (r"[a-z]+", "small letters"),
    (r"-", "a hyphen"),
    (r"(19|20)\d\d", "a year"),
    (r"@[a-z]+\.(com|org)", "an @ and a domain"),
    (r"#[0-9a-f]{6}", "a colour in hexadecimal"),
)


def answers(query: str) -> list[tuple[object, ...]] | None:
    """What the database says, sorted; ``None`` if it refuses the query."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(TABLES)
        try:
            return sorted(database.execute(query).fetchall(), key=repr)
        except sqlite3.Error:
            return None


def sql_items(count: int, seed: int) -> list[Item]:
    """Questions with the query that answers them."""
    rng = random.Random(seed)
    described = "; ".join(f"{table}({', '.join(columns)})" for table, columns in COLUMNS.items())
    items = []
    for place in range(count):
        question, query = QUESTIONS[place % len(QUESTIONS)]
        words = {
            "city": rng.choice(["Bern", "Oslo", "Rome"]),
            "name": rng.choice(["Anna", "Ben", "Carla", "Deniz"]),
            "status": rng.choice(["paid", "open"]),
            "n": rng.choice([20, 30, 60]),
        }
        wanted = answers(query.format(**words))
        prompt = [
            {
                "role": "system",
                "content": f"You write one SQLite query and nothing else. Tables: {described}. "
                "Example: SELECT total FROM orders WHERE id = 3;",
            },
            {"role": "user", "content": question.format(**words)},
        ]

        def is_right(text: str, expected: object = wanted) -> bool:
            return answers(text) == expected

        items.append(Item(prompt, SQL, is_right, 40))
    return items


def pattern_items(count: int, seed: int) -> list[Item]:
    """Patterns of two to four pieces; right texts also begin with a letter or digit that the prompt names."""
    rng = random.Random(seed)
    items = []
    for _ in range(count):
        pieces = [rng.choice(PIECES) for _ in range(rng.randint(2, 4))]
        pattern = "[A-Za-z0-9]" + "".join(piece for piece, _ in pieces)
        first = rng.choice("ABCDEFGHKLMNPRST")
        told = f"the letter {first}, then " + ", then ".join(name for _, name in pieces)
        prompt = [
            {"role": "system", "content": "You write one text that has the wanted form, and nothing else."},
            {
                "role": "user",
                "content": f"Write a text of this form: {told}. As a regular expression: {pattern}",
            },
        ]

        def is_right(text: str, pattern: str = pattern, first: str = first) -> bool:
            return re.fullmatch(pattern, text) is not None and text.startswith(first)

        items.append(Item(prompt, constrain.regex(pattern), is_right, 32))
    return items


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--task", default="sql,patterns", help="sql, patterns or both")
    made.add_argument("--outputs", type=int, default=8)
    arguments = made.parse_args()
    t, n = arguments.temperature, arguments.outputs
    methods: dict[str, Method] = {
        "local": several(t, n, is_weighted=False),
        "importance": several(t, n, is_weighted=True),
        "rejection": several(t, n, is_weighted=True, method="rejection"),
        f"smc {n}": population(t, n),
    }
    for task in arguments.task.split(","):
        count = arguments.items or (4 if arguments.quick else 32)
        items = sql_items(count, arguments.seed) if task == "sql" else pattern_items(count, arguments.seed)
        print(f"== {task}")
        run(items, methods, arguments)


if __name__ == "__main__":
    main()
