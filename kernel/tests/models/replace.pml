/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that an atomic write replaces while processes map the file (docs/atomic-data.md,
 * "Mappings").
 *
 * One page of one file, and two systems. In each system a thread writes the page atomically, and a
 * process maps the page, stores to it, and unmaps it. A writer replaces the page if no live system
 * maps the file. Otherwise it stores in place, after a log. A system may be killed at any point; it
 * is then recovered.
 *
 * Checked: a process never has a page that the file does not have any more, because its stores
 * would be lost. Every fault and every write ends (otherwise the model reports a deadlock).
 *
 * Left out: the order of the stores of a transaction (crash_atomic_test checks it), the reuse of
 * old pages (epoch.pml), and systems that join again. A bit that such a system left only makes
 * writers use a log.
 *
 * The memory model matters here: a plain store of a system waits in its store buffer while the
 * system loads other words. Taking a lock is a full fence, and releasing a lock is a store. A
 * buffer of one entry is enough: each of the two stores is followed by one load of another word.
 * The bit in `mappers` is stored by a locked instruction in the code, but the model does not rely
 * on that, only on the fence behind it.
 *
 * check: BFS
 * mutant: WRITER_NO_FENCE BFS
 * mutant: MAPPER_NO_FENCE BFS
 * mutant: WRITER_LOOKS_FIRST BFS
 * mutant: FAULT_BLIND BFS
 * mutant: TABLE_FIRST BFS
 * mutant: CLEARED_FIRST BFS
 * mutant: BIT_AFTER_FAULT BFS
 * mutant: UNMAPPED_LATE BFS
 */
#ifndef DEATHS
#define DEATHS 1
#endif
#define WRITES 2	/* of each system */
#define MAPS 2

mtype = { LIVE, DEAD, FREE };		/* sg_slot.state */
mtype = { IDLE, LOCKED, NAMED, FENCED, LOOKED, VALID, STORED };	/* a writer */
mtype = { NONE, BIT, READY, SEEN, WAITS, READ, MAPPED, GONE };		/* a process that maps */

/* Shared: the slots; the page of the file; the inode's lock (slot + 1), and its two words */
mtype state[2] = LIVE;
byte page = 1, lock, replacing, mappers;

/* Of a system: slot + 1 or a bit in its store buffer */
bool running[2] = true;
bool stores_name[2], stores_bit[2];

mtype writer[2] = IDLE;
bool replaces[2];
byte writes[2];

mtype process[2] = NONE;
byte mapped[2], maps[2];	/* the page that it has, or 0 */

byte deaths;

#define RUNS(p)		(running[p] && state[p] == LIVE)
#define OWN(p)		(1 << (p))
#define SEES(p, q)	((mappers & OWN(q) || (p == q && stores_bit[q])) && state[q] == LIVE)
/* as sg_is_replacing() in system p */
#define NAME(p)		(stores_name[p] -> p + 1 : replacing)
#define HOLDS(n)	(n && state[(n -> n - 1 : 0)] != FREE)

/* The rules, and the mutants that break them. */
#ifdef MUTANT_WRITER_NO_FENCE
#define WRITER_FENCED(p)	true
#else
#define WRITER_FENCED(p)	(!stores_name[p])
#endif
#ifdef MUTANT_MAPPER_NO_FENCE
#define MAPPER_FENCED(p)	true
#else
#define MAPPER_FENCED(p)	(!stores_bit[p])
#endif
#ifdef MUTANT_TABLE_FIRST
#define AFTER_WAIT	READY
#else
#define AFTER_WAIT	SEEN
#endif
#ifdef MUTANT_FAULT_BLIND
#define MUST_WAIT(p)	false
#else
#define MUST_WAIT(p)	HOLDS(NAME(p))
#endif

inline drops(p) { mapped[p] = 0; process[p] = NONE }

/* data/atomic.c: choose(), then the transaction, whose record holds the entry and the name */
inline writes_page(p) {
	if
	:: d_step { RUNS(p) && writer[p] == IDLE && writes[p] < WRITES && !lock ->
		lock = p + 1; writes[p]++; writer[p] = LOCKED
	}
#ifdef MUTANT_WRITER_LOOKS_FIRST
	:: d_step { RUNS(p) && writer[p] == LOCKED ->
		replaces[p] = !SEES(p, 0) && !SEES(p, 1); writer[p] = NAMED
	}
	:: d_step { RUNS(p) && writer[p] == NAMED -> stores_name[p] = true; writer[p] = FENCED }
	:: d_step { RUNS(p) && writer[p] == FENCED && !stores_name[p] -> writer[p] = LOOKED }
#else
	:: d_step { RUNS(p) && writer[p] == LOCKED -> stores_name[p] = true; writer[p] = NAMED }
	:: d_step { RUNS(p) && writer[p] == NAMED && WRITER_FENCED(p) -> writer[p] = FENCED }
	:: d_step { RUNS(p) && writer[p] == FENCED ->
		replaces[p] = !SEES(p, 0) && !SEES(p, 1); writer[p] = LOOKED
	}
#endif
	/* the record is valid: from here on, replay completes the change */
	:: d_step { RUNS(p) && writer[p] == LOOKED && !stores_name[p] -> writer[p] = VALID }
#ifdef MUTANT_CLEARED_FIRST
	:: d_step { RUNS(p) && writer[p] == VALID -> replacing = 0; writer[p] = STORED }
	:: d_step { RUNS(p) && writer[p] == STORED -> switches(p); ends(p) }
#else
	:: d_step { RUNS(p) && writer[p] == VALID -> switches(p); writer[p] = STORED }
	:: d_step { RUNS(p) && writer[p] == STORED -> replacing = 0; ends(p) }
#endif
	fi
}
inline switches(p) {
	if
	:: replaces[p] ->
		page = page + 1;
		assert(!(RUNS(0) && mapped[0]) && !(RUNS(1) && mapped[1]))
	:: else
	fi
}
inline ends(p) { lock = 0; replaces[p] = false; writer[p] = IDLE }

/* sg_set_mapper(), then faults; sg_wait_replaced() */
inline maps_page(p) {
	if
#ifdef MUTANT_BIT_AFTER_FAULT
	:: d_step { RUNS(p) && process[p] == NONE && maps[p] < MAPS -> maps[p]++; process[p] = READY }
#else
	:: d_step { RUNS(p) && process[p] == NONE && maps[p] < MAPS ->
		maps[p]++; stores_bit[p] = true; process[p] = BIT
	}
	:: d_step { RUNS(p) && process[p] == BIT && MAPPER_FENCED(p) -> process[p] = READY }
#endif
#ifdef MUTANT_TABLE_FIRST
	:: d_step { RUNS(p) && process[p] == READY -> mapped[p] = page; process[p] = SEEN }
	:: d_step { RUNS(p) && process[p] == SEEN ->
		process[p] = (MUST_WAIT(p) -> WAITS : READ); mapped[p] = (MUST_WAIT(p) -> 0 : mapped[p])
	}
	:: d_step { RUNS(p) && process[p] == READ -> has_mapped(p) }
#else
	:: d_step { RUNS(p) && process[p] == READY ->
		process[p] = (MUST_WAIT(p) -> WAITS : SEEN)
	}
	:: d_step { RUNS(p) && process[p] == SEEN -> mapped[p] = page; has_mapped(p) }
#endif
	:: d_step { RUNS(p) && process[p] == WAITS && !lock ->
		replacing = 0;		/* a system that died without a record may have left it */
		process[p] = AFTER_WAIT
	}
	/* unmaps the page, then withdraws the bit */
#ifdef MUTANT_UNMAPPED_LATE
	:: d_step { RUNS(p) && process[p] == MAPPED && !stores_bit[p] ->
		mappers = mappers & ~OWN(p); process[p] = GONE
	}
	:: d_step { RUNS(p) && process[p] == GONE -> drops(p) }
#else
	:: d_step { RUNS(p) && process[p] == MAPPED -> mapped[p] = 0; process[p] = GONE }
	:: d_step { RUNS(p) && process[p] == GONE && !stores_bit[p] ->
		mappers = mappers & ~OWN(p); drops(p)
	}
#endif
	fi
}
inline has_mapped(p) {
	assert(mapped[p] == page);
	process[p] = MAPPED;
#ifdef MUTANT_BIT_AFTER_FAULT
	stores_bit[p] = true
#endif
}

/* A store buffer drains; a system dies, and is recovered: replayed, then released. */
inline happens(p) {
	if
	:: d_step { stores_name[p] -> replacing = p + 1; stores_name[p] = false }
	:: d_step { stores_bit[p] -> mappers = mappers | OWN(p); stores_bit[p] = false }
	:: d_step { deaths < DEATHS && running[p] ->
		deaths++; running[p] = false; drops(p)
	}
	:: d_step { !running[p] && state[p] == LIVE && !stores_name[p] && !stores_bit[p] ->
		state[p] = DEAD
	}
	:: d_step { state[p] == DEAD ->
		if
		:: writer[p] == VALID -> switches(p); replacing = 0
		:: writer[p] == STORED -> replacing = 0
		:: else		/* no record: the word stays */
		fi;
		lock = (lock == p + 1 -> 0 : lock);
		replaces[p] = false; writer[p] = IDLE; state[p] = FREE
	}
	fi
}

#define RESTS(p)	(!running[p] && state[p] == FREE || \
			 writer[p] == IDLE && process[p] == NONE && writes[p] == WRITES && maps[p] == MAPS)

active proctype Systems() {
	do
	:: writes_page(0) :: writes_page(1)
	:: maps_page(0) :: maps_page(1)
	:: happens(0) :: happens(1)
	:: RESTS(0) && RESTS(1) -> break
	od
}
