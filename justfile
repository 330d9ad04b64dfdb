# Every command a developer needs. `scripts/test` calls these recipes and nothing else.

# The program as the tests build it.
program := env('CARGO_TARGET_DIR', 'target') / 'debug/jurat'

# Lists the recipes.
default:
    @just --list --unsorted

# What must be green before you push. Needs no database.
verify: check test doc

# What must be green before a merge; `scripts/test` does the same with its own set-up.
ci: check test-all generate-check doc

# What must be green before a release: no dependency with a known hole, and all of `ci`. Needs
# cargo-deny (`cargo install cargo-deny --locked`) and a network, from which the advisories come.
release-check: && ci
    cargo deny check advisories

# Format, lints, house rules, dependencies, spelling.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
    cargo xtask tidy
    typos

# Repairs what can be repaired.
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --all-features --fix --allow-dirty
    typos --write-changes

# Unit, conformance (SQLite) and HTTP tests. Needs cargo, and Python 3 and Node 24 for the examples.
test *args:
    cargo nextest run --workspace --locked {{ args }}

# The PostgreSQL half of the conformance suite, on a private server.
test-pg *args:
    JURAT_TEST_POSTGRES="${JURAT_TEST_POSTGRES:-$(scripts/postgres start)}" cargo nextest run --workspace --locked --profile pg {{ args }}

# The real binary, and two nodes on one PostgreSQL.
e2e *args:
    JURAT_TEST_POSTGRES="${JURAT_TEST_POSTGRES:-$(scripts/postgres start)}" cargo nextest run --workspace --locked --profile e2e {{ args }}

# Every test there is, in one run.
test-all *args:
    JURAT_TEST_POSTGRES="${JURAT_TEST_POSTGRES:-$(scripts/postgres start)}" cargo nextest run --workspace --locked --profile ci {{ args }}

# The driver of tasks in many more simulated worlds than the tests visit: `just simulate 100000`. A
# world that goes wrong is named with the command that replays it.
simulate worlds='10000':
    JURAT_SIMULATE={{ worlds }} cargo nextest run --package jurat-engine --locked --profile simulate --no-capture

# Kills a process at every point of a task and of a run, on PostgreSQL too: minutes on two cores.
killed *args:
    JURAT_TEST_KILLED=all JURAT_TEST_POSTGRES="${JURAT_TEST_POSTGRES:-$(scripts/postgres start)}" cargo nextest run --package jurat --locked --profile killed {{ args }}

# Stops the private PostgreSQL server that the recipes above leave running.
pg-stop:
    scripts/postgres stop

# Shows changed snapshots one by one. Needs cargo-insta.
snap:
    cargo insta review

# Writes the generated pages of docs/reference, and the generated files of the SDKs.
generate:
    cargo build --package jurat --locked
    cargo xtask generate --cli {{ quote(program) }}
    scripts/sdk-types

# Fails if a generated page is stale. Asks the program that the tests have built, to build it once.
generate-check:
    cargo xtask generate --check --cli {{ quote(program) }}
    scripts/sdk-types --check

# Tries the API from outside: a validator, a linter, generated clients, and a fuzzer with few examples.
# Asks the program that the tests have built. Needs Python and Node 24, and a network when it runs first.
api-check *args:
    scripts/api-check --program {{ quote(program) }} --examples 25 {{ args }}

# Calls the tools for models with a client that nobody here wrote. Asks the program that the tests
# have built. Needs Python, and a network when it runs first.
mcp-check *args:
    scripts/mcp-check --program {{ quote(program) }} {{ args }}

# Calls every method of the Agent2Agent protocol with the clients of its own SDKs. Asks the program that
# the tests have built. Needs Python, npm for the client in JavaScript, and a network when it runs first.
a2a-check *args:
    scripts/a2a-check --program {{ quote(program) }} {{ args }}
    scripts/a2a-clients --program {{ quote(program) }} {{ args }}

# The compatibility kit of the Agent2Agent protocol, from a checkout of its branch 1.0-dev:
# `just a2a-tck PATH`. Needs Python 3.11, and a network when it runs first.
a2a-tck kit *args:
    cargo build --package jurat --locked
    scripts/a2a-tck {{ quote(kit) }} --program {{ quote(program) }} {{ args }}

# Holds conversations with the official clients of OpenAI's API. Asks the program that the tests have
# built. Needs Python, npm for the client in TypeScript, and a network when it runs first.
openai-check *args:
    scripts/openai-check --program {{ quote(program) }} {{ args }}

# Runs the recipes of the guide with their frameworks and a scripted model. Asks the program that the
# tests have built. Needs Python 3.11, curl, jq, npm for Claude Code, and a network when it runs first.
recipes-check *args:
    scripts/recipes-check --program {{ quote(program) }} {{ args }}

# Installs the packages in sdk/ as a user does, and runs their tests. Asks the program that the tests
# have built. Needs Python and Node 24, and a network when it runs first.
sdk-check *args:
    scripts/sdk-check --program {{ quote(program) }} {{ args }}

# Lets a real language model judge labelled claims over both protocols: minutes on two cores.
real-judge *args:
    cargo build --package jurat --locked
    scripts/real-judge --program {{ quote(program) }} {{ args }}

# The same with few claims, where an earlier `just real-judge` has installed the model: seconds. Asks
# the program that the tests have built. Installs nothing, and says so when it is skipped.
judge-check *args:
    scripts/real-judge --if-installed --program {{ quote(program) }} --cases 3 {{ args }}

# Drives the command line of the Goodeye registry, from PyPI, against a server of ours. Asks the
# program that the tests have built. Needs Python 3.11, and a network when it runs first.
goodeye-check *args:
    scripts/goodeye-check --program {{ quote(program) }} {{ args }}

# Runs programs that were written for the Cortensor router, from PyPI and npm, against a server of ours;
# with `--community PATH` also those in a checkout of the community's repository. Asks the program that
# the tests have built. Needs Python 3.11, npm for one of them, and a network when it runs first.
peers-check *args:
    scripts/peers-check --program {{ quote(program) }} {{ args }}

# Lets the official clients of x402 pay a server through the official facilitator, on a chain of their
# own. Asks the program that the tests have built. Needs Python, npm, and a network when it runs first.
x402-check:
    scripts/x402-check {{ quote(program) }}

# The tools for models with the clients and agent frameworks that people use. Asks the program that the
# tests have built. Needs Python 3.11, npm and Node 24, and a network when it runs first.
mcp-clients *args:
    scripts/mcp-clients --program {{ quote(program) }} {{ args }}

# Every check with suites and clients of others, even if one fails, and the report of them in
# docs/reference/conformance.md: an hour of requests. `--only NAME` runs one check, and `--kit PATH` the
# compatibility kit of the Agent2Agent protocol too. Needs Python 3.11, npm, Node 24, curl and jq.
conformance *args:
    cargo build --package jurat --locked
    scripts/conformance --program {{ quote(program) }} {{ args }}

# Builds the documentation of the code; a broken link is an error.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked

# What tidy checks of the dependencies, and the advisories. Needs cargo-deny and a network.
deny:
    cargo deny check

# The server on its default port with a SQLite file.
run *args:
    cargo run --package jurat -- serve {{ args }}

# Executors, one liar, one that hangs, the server, two rounds, a verifier.
demo *args:
    cargo run --release --package jurat -- demo {{ args }}

# A new pair of migrations: just migration add_runs
migration name:
    cargo xtask migration {{ name }}

# What a round costs. Each folder under bench/ says what it measures.
bench-round *args:
    cargo run --release --package jurat-bench-round -- {{ args }}

# What is left of the work at five times the load, and beside connections that stall.
bench-overload *args:
    cargo run --release --package jurat-bench-overload -- {{ args }}

# What MCP, A2A and the OpenAI shape cost beside REST, for the same round.
bench-surfaces *args:
    cargo run --release --package jurat-bench-surfaces -- {{ args }}

# What a verification costs.
bench-verify *args:
    cargo run --release --package jurat-bench-verify -- {{ args }}

# What a run of a verifier costs beside its judge, and whether lists of many verifiers stay as fast.
bench-registry *args:
    cargo run --release --package jurat-bench-registry -- {{ args }}

# What a task costs, and whether a long log slows it.
bench-tasks *args:
    cargo run --release --package jurat-bench-tasks -- {{ args }}

# A hostile tenant against a release build on both databases, attack by attack: minutes.
attack *args:
    cargo build --release --package jurat --locked
    python3 tests/attack/attack.py --program "${CARGO_TARGET_DIR:-target}/release/jurat" --postgres "${JURAT_TEST_POSTGRES:-$(scripts/postgres start)}" {{ args }}

# Whether what belongs to another tenant takes as long to refuse as what nobody has.
tenants-timing *args:
    cargo build --release --package jurat
    python3 tests/tenants/timing.py --program target/release/jurat {{ args }}

# Removes one condition at a time that keeps tenants apart, and sees that a test fails: an hour when it
# is built anew. Takes parts of the names of mutants.
tenants-mutants *args:
    JURAT_TEST_POSTGRES="${JURAT_TEST_POSTGRES:-$(scripts/postgres start)}" python3 tests/tenants/mutants.py {{ args }}

# Changes one thing of the core at a time and sees that a test of the core fails. Builds each mutant, so
# that it is best done in parts, `just mutants --shard 0/8` first. Installs cargo-mutants.
mutants *args:
    scripts/mutants {{ args }}

# How long the server takes to be ready with a million rounds, beside an empty store.
bench-start *args:
    cargo build --release --package jurat --package jurat-bench-start
    cargo run --release --package jurat-bench-start -- {{ args }}
