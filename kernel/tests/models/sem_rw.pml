/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers that count themselves in cells, and a writer that takes the word (docs/semaphores.md, 5).
 *
 * Two readers, each with its own cell, and two writers, ROUNDS times each. sem.pml models their
 * waits and the order of waiters; here a thread that cannot continue is blocked until it can. A
 * reader detects only after it has counted itself that it must wait; then it withdraws.
 *
 * Checked: a writer has the lock alone. The next owner after a death gets EOWNERDEAD, and no other
 * one. Dead threads keep no lock, which would be a deadlock.
 *
 *   DEATHS  number of threads that die, at any point, and are recovered at any later time
 *
 * Memory is sequentially consistent here: a reader counts itself, and a writer takes the word, by a
 * locked instruction, before either loads the other one's word.
 *
 * check: ROUNDS=2
 * check: ROUNDS=2 DEATHS=2
 * mutant: READER_LOOKS_FIRST ROUNDS=1
 * mutant: WRITER_LOOKS_FIRST ROUNDS=1
 * mutant: CELLS_OF_THE_DEAD ROUNDS=1 DEATHS=1
 * mutant: CELLS_LET_GO ROUNDS=1 DEATHS=1
 * mutant: NOT_TOLD ROUNDS=1 DEATHS=1
 */
#ifndef DEATHS
#define DEATHS 0
#endif
#define N	4		/* 0 and 1 read, 2 and 3 write; each on its own system */

mtype = { LIVE, DEAD, FREE };
mtype state[N] = LIVE;
bool running[N] = true;

byte word;			/* writer + 1, and */
#define OWNER(w)	((w) & 7)
#define DIED		8
byte cell[2];

/* For the checks only */
bool inside[N];
bool dirty;			/* a writer died with the lock */
byte deaths;

#define RUNS		(running[p] && state[p] == LIVE)
#define LEFT(w)		(OWNER(w) && state[OWNER(w) - 1] == FREE)

#ifdef MUTANT_CELLS_OF_THE_DEAD		/* readers of dead systems count forever */
#define COUNTS(q)	(cell[q] != 0)
#elif defined(MUTANT_CELLS_LET_GO)	/* readers of dead systems stop counting before recovery */
#define COUNTS(q)	(cell[q] && running[q])
#else
#define COUNTS(q)	(cell[q] && state[q] != FREE)
#endif
#define READERS		(COUNTS(0) || COUNTS(1))
/* may still store: a dead system until it is fenced */
#define STORES(q)	(inside[q] && state[q] != FREE)

proctype Reader(byte p) {
	byte round;

	do
	:: round == ROUNDS -> goto done
	:: round < ROUNDS ->
look:		if
		:: RUNS && !OWNER(word)
		:: d_step { RUNS && LEFT(word) -> word = DIED }
			goto look
		:: !RUNS -> goto done
		fi;
		if
		:: d_step { RUNS -> cell[p]++ }
		:: !RUNS -> goto done
		fi;
#ifndef MUTANT_READER_LOOKS_FIRST
		if
		:: RUNS && !OWNER(word)
		:: d_step { RUNS && OWNER(word) -> cell[p]-- }
			goto look
		:: !RUNS -> goto done
		fi;
#endif
		if
		:: d_step {
			RUNS ->
			assert(!STORES(2) && !STORES(3));
			assert(!dirty || word & DIED);
			inside[p] = true
		   }
		:: !RUNS -> goto done
		fi;
		if
		:: d_step { RUNS -> inside[p] = false; cell[p]-- }
		:: !RUNS -> goto done
		fi;
		round++
	od;
done:	skip
}

proctype Writer(byte p) {
	byte round, seen;

	do
	:: round == ROUNDS -> goto done
	:: round < ROUNDS ->
#ifdef MUTANT_WRITER_LOOKS_FIRST
		if
		:: RUNS && !READERS
		:: !RUNS -> goto done
		fi;
#endif
take:		if
		:: d_step { RUNS && !OWNER(word) -> word = (p + 1) | (word & DIED) }
#ifdef MUTANT_NOT_TOLD
		:: d_step { RUNS && LEFT(word) -> word = 0 }
#else
		:: d_step { RUNS && LEFT(word) -> word = DIED }
#endif
			goto take
		:: !RUNS -> goto done
		fi;
#ifndef MUTANT_WRITER_LOOKS_FIRST
		if
		:: RUNS && !READERS
		:: !RUNS -> goto done
		fi;
#endif
		if
		:: d_step {
			RUNS ->
			assert(!STORES(0) && !STORES(1) && !STORES(5 - p));
			assert(!dirty || word & DIED);
			inside[p] = true
		   }
		:: !RUNS -> goto done
		fi;
		/* makes the object consistent, or leaves that to the next owner */
		if
		:: d_step { RUNS && word & DIED -> word = word & ~DIED; dirty = false }
		:: RUNS
		:: !RUNS -> goto done
		fi;
		if
		:: d_step { RUNS -> inside[p] = false; word = word & DIED }
		:: !RUNS -> goto done
		fi;
		round++
	od;
done:	skip
}

active proctype Fate() {
	byte p;

	atomic { run Reader(0); run Reader(1); run Writer(2); run Writer(3) }
	do
	:: deaths < DEATHS ->
		atomic {	/* any of them: d_step would always choose the same one */
			if
			:: running[0] -> p = 0
			:: running[1] -> p = 1
			:: running[2] -> p = 2
			:: running[3] -> p = 3
			fi;
			running[p] = false;
			deaths++
		}
		state[p] = DEAD;
		d_step { state[p] = FREE; dirty = (dirty || (p >= 2 && inside[p])) }
	:: true -> break
	od
}
