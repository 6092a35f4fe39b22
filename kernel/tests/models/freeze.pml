/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A freeze while a system copies the volume (docs/snapshots.md).
 *
 * Three systems; two of them copy. All work, join, leave, die, are recovered, and follow
 * announcements. A frozen system continues at any moment, as if its time limit had passed just
 * then. So the model covers all clocks, and any end of the copying system.
 *
 * Checked: during a valid copy no system stores, neither in an operation that began before or
 * meanwhile, nor in the recovery of another system.
 *
 * Memory is sequentially consistent. x86 keeps loads in order and stores in order. Where a load
 * must not come before a store (a system freezes or joins, and then loads words of others), the
 * code has a full fence.
 *
 * check: BFS
 * check: JOINS=4 DEATHS=1 ATTEMPTS=1 BFS
 * mutant: NOT_ENDED DEATHS=1 ATTEMPTS=1 BFS
 * mutant: STORES_FIRST DEATHS=1 ATTEMPTS=1 BFS
 * mutant: NOT_LOOKED DEATHS=1 ATTEMPTS=1 BFS
 * mutant: JOINER_UNSEEN DEATHS=1 ATTEMPTS=1 BFS
 * mutant: ANY_INCARNATION DEATHS=1 ATTEMPTS=1 BFS
 * mutant: ANSWERS_AGAIN DEATHS=1 ATTEMPTS=1 BFS
 * mutant: RECOVERER_UNSEEN DEATHS=1 ATTEMPTS=1 BFS
 */
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef JOINS
#define JOINS 3		/* including the first of each system */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif

#define FREE		0
#define LIVE		1
#define DEAD		2
#define RECOVERING	3

mtype = { WORKS, CLOSED, STANDS };			/* a system that follows */
mtype = { IDLE, HOLDS, ANNOUNCED, COPIES, LOOKS };	/* a system that copies */

/* Shared: the slots' state words, the announcement, its lock, and the answers of frozen systems */
byte state[3], inc[3], by[3];
byte lock;
bool on;
byte attempt, frozen[3], frozen_inc[3];
bool record[3];			/* true for a dead system that had an operation in progress */

/*
 * Of a system: its present step, the attempt for which it is frozen, the last attempt that it has
 * answered
 */
mtype at[3] = WORKS, holder[3] = IDLE;
bool op[3];
byte mine[3], answered[3];

/* Of a copying system: the next slot, the value seen in each, whether another system has stored */
byte i[2], tries[2], saw_state[6], saw_inc[6];
bool overlapped[2];

byte deaths, joins;

#define RUNS(p)		(state[p] == LIVE)
#define HELD		(lock != 0 && state[lock - 1] != FREE)
#define HOLDER_LIVES	(lock != 0 && state[lock - 1] == LIVE)
#define STORED		{ overlapped[0] = overlapped[0] || holder[0] == COPIES; \
			  overlapped[1] = overlapped[1] || holder[1] == COPIES }

/* reports that it is frozen while an operation is in progress */
#ifdef MUTANT_NOT_ENDED
#define ENDED(p)	true
#else
#define ENDED(p)	(!op[p])
#endif
#ifdef MUTANT_STORES_FIRST		/* continues, and withdraws its answer only afterwards */
#define MAY_STORE(p)	(at[p] == WORKS || (at[p] == STANDS && !mine[p]))
#else
#define MAY_STORE(p)	(at[p] == WORKS)
#endif
/* assumes that a system frozen at the beginning was frozen until the end */
#ifdef MUTANT_NOT_LOOKED
#define STILL(h, q)	true
#else
#define STILL(h, q)	(frozen[q] == tries[h] && frozen_inc[q] == inc[q])
#endif
/* checks again only systems that existed at the first check */
#ifdef MUTANT_JOINER_UNSEEN
#define COMPARED(h, q)	(saw_state[3 * h + q] == LIVE)
#else
#define COMPARED(h, q)	true
#endif
#ifdef MUTANT_ANY_INCARNATION
#define OF_NOW(q)	true
#else
#define OF_NOW(q)	(frozen_inc[q] == inc[q])
#endif
/* answers the same attempt again, although it has continued meanwhile */
#ifdef MUTANT_ANSWERS_AGAIN
#define NEW(p)		true
#else
#define NEW(p)		(answered[p] != attempt)
#endif
/* assumes that no store comes for a dead system, although its recoverer stores */
#ifdef MUTANT_RECOVERER_UNSEEN
#define SETTLED(q)	(state[q] != LIVE)
#else
#define SETTLED(q)	(state[q] == FREE)
#endif
#define READY(h, q)	(SETTLED(q) || (state[q] == LIVE && frozen[q] == tries[h] && OF_NOW(q)))
#define SAME(h, q)	(state[q] == saw_state[3 * h + q] && inc[q] == saw_inc[3 * h + q] && \
			 (state[q] != LIVE || STILL(h, q)))

/* All private state of a system is lost. */
inline forget(p) {
	at[p] = WORKS; op[p] = false; mine[p] = 0; answered[p] = 0; holder[p] = IDLE;
	if
	:: p < 2 -> i[p] = 0; tries[p] = 0; overlapped[p] = false
	:: else
	fi
}

inline lives(p) {
	if
	:: d_step { state[p] == FREE && joins < JOINS ->
		joins++; inc[p]++; state[p] = LIVE }
	:: d_step { RUNS(p) && !op[p] && at[p] == WORKS && holder[p] == IDLE ->
		state[p] = FREE; forget(p) }
	:: d_step { RUNS(p) && MAY_STORE(p) && !op[p] -> op[p] = true }
	:: d_step { RUNS(p) && op[p] -> STORED }
	:: d_step { RUNS(p) && op[p] -> op[p] = false }
	fi
}

/*
 * The system's own thread closes the gate, waits for operations in progress, and answers. It
 * continues at any moment.
 */
inline follows(p) {
	if
	:: d_step { RUNS(p) && at[p] == WORKS && on && HOLDER_LIVES && NEW(p) ->
		mine[p] = attempt; at[p] = CLOSED; answered[p] = attempt }
	:: d_step { RUNS(p) && at[p] == CLOSED && ENDED(p) ->
		frozen[p] = mine[p]; frozen_inc[p] = inc[p]; at[p] = STANDS }
	:: d_step { RUNS(p) && at[p] == CLOSED -> at[p] = WORKS; mine[p] = 0 }
#ifdef MUTANT_STORES_FIRST
	:: d_step { RUNS(p) && at[p] == STANDS && mine[p] -> mine[p] = 0 }
	:: d_step { RUNS(p) && at[p] == STANDS && !mine[p] -> frozen[p] = 0; at[p] = WORKS }
#else
	:: d_step { RUNS(p) && at[p] == STANDS -> frozen[p] = 0; at[p] = CLOSED }
#endif
	fi
}

inline looks(h, next) {
	i[h]++;
	if
	:: i[h] == 3 -> i[h] = 0; holder[h] = next
	:: else
	fi
}

inline ends(h) {
	on = false; lock = 0; i[h] = 0; tries[h] = 0; overlapped[h] = false; holder[h] = IDLE;
	saw_state[3 * h] = 0; saw_state[3 * h + 1] = 0; saw_state[3 * h + 2] = 0;
	saw_inc[3 * h] = 0; saw_inc[3 * h + 1] = 0; saw_inc[3 * h + 2] = 0
}

/* The copying system may give up at any time; the freeze ends in any case. */
inline copies(h) {
	if
	:: d_step { RUNS(h) && holder[h] == IDLE && !HELD && attempt < ATTEMPTS ->
		lock = h + 1; holder[h] = HOLDS }
	:: d_step { RUNS(h) && holder[h] == HOLDS ->
		attempt++; tries[h] = attempt; on = true; holder[h] = ANNOUNCED }
	:: d_step { RUNS(h) && holder[h] == ANNOUNCED && READY(h, i[h]) ->
		saw_state[3 * h + i[h]] = state[i[h]]; saw_inc[3 * h + i[h]] = inc[i[h]];
		looks(h, COPIES) }
	:: d_step { RUNS(h) && holder[h] == COPIES -> holder[h] = LOOKS }
	:: d_step { RUNS(h) && holder[h] == LOOKS && (!COMPARED(h, i[h]) || SAME(h, i[h])) ->
		looks(h, IDLE);
		if
		:: holder[h] == IDLE -> assert(!overlapped[h]); ends(h)
		:: else
		fi }
	:: d_step { RUNS(h) && (holder[h] == ANNOUNCED ||
		    (holder[h] == LOOKS && COMPARED(h, i[h]) && !SAME(h, i[h]))) -> ends(h) }
	fi
}

/* A system dies at any point. Its recovery releases its locks. */
inline dies(p) {
	if
	:: d_step { deaths < DEATHS && RUNS(p) ->
		deaths++; state[p] = DEAD; record[p] = op[p]; forget(p) }
	:: d_step { state[p] == DEAD && (RUNS(0) || RUNS(1) || RUNS(2)) ->
		if
		:: RUNS(0) -> by[p] = 0
		:: RUNS(1) -> by[p] = 1
		:: RUNS(2) -> by[p] = 2
		fi;
		state[p] = RECOVERING }
	:: d_step { state[p] == RECOVERING && RUNS(by[p]) && record[p] -> STORED }
	:: d_step { state[p] == RECOVERING && RUNS(by[p]) ->
		record[p] = false; by[p] = 0; state[p] = FREE; lock = (lock == p + 1 -> 0 : lock) }
	:: d_step { state[p] == RECOVERING && !RUNS(by[p]) -> state[p] = DEAD }
	fi
}

active proctype Systems() {
end:	do
	:: lives(0) :: lives(1) :: lives(2)
	:: follows(0) :: follows(1) :: follows(2)
	:: copies(0) :: copies(1)
	:: dies(0) :: dies(1) :: dies(2)
	od
}
