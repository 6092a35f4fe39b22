/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth in place, while systems work, join, die and are recovered (docs/protocol.md, section 7).
 *
 * Three systems, one growth. System 2 has no memory behind the old end; the other systems have such
 * memory. Any system may grow the volume, and use the new part after it has seen the growth. An
 * operation that began at any earlier time, with the bound of that time, may find references to the
 * new part. Two epochs are modelled by their guarantee (epoch.pml): earlier operations have ended.
 *
 * Checked: no live system finds a reference behind its bound, or replays a record with one. No
 * system has a size above its bound. A system without the memory never joins a volume that needs
 * it. The volume grows in each run (otherwise the model reports a deadlock).
 *
 * Memory is sequentially consistent: the two steps that need this, announcing and joining, have a
 * full fence each.
 *
 * check: BFS
 * mutant: UNANSWERED BFS
 * mutant: NOT_ENDED BFS
 * mutant: LOOKED_FIRST BFS
 * mutant: JOINED_BLINDLY BFS
 * mutant: RECOVERED_BLINDLY BFS
 */
#ifndef DEATHS
#define DEATHS 2
#endif

mtype = { FREE, LIVE, DEAD };
mtype = { IDLE, HOLDS, ANNOUNCED, ANSWERED, ENDED, COMMITTED };	/* a grower */
mtype = { OUT, OPENED, TAKEN, IN };				/* a joiner */

/* Shared: the slots, the lock of growth, hot.grow and hot.size: 0 is the old size, 1 the new one */
mtype state[3] = FREE;
byte lock;
bool announced, size, cannot[3], reach[3];
bool used;			/* references to the new part exist */
bool record[3];			/* the journal of a dead system has such a reference */

/* Of a system */
mtype at[3] = OUT, grower[3] = IDLE;
bool known[3], bound[3];
byte op[3];			/* an operation in progress: 1 + the bound at its begin */
byte i[3];			/* the slot that a grower checks next */
byte deaths;

#define MEMORY(p)	((p) != 2)
#define RUNS(p)		(at[p] == IN && state[p] == LIVE)
#define HELD(p)		(lock != 0 && state[lock - 1] != FREE)

#ifdef MUTANT_UNANSWERED
#define READY(q)	true
#else
#define READY(q)	(state[q] != LIVE || reach[q])
#endif
#ifdef MUTANT_NOT_ENDED
#define OVER(q)		true
#else
#define OVER(q)		(state[q] != LIVE || op[q] != 1)
#endif
#ifdef MUTANT_LOOKED_FIRST		/* checks the slots, and announces afterwards */
#define FIRST_ANNOUNCED	false
#else
#define FIRST_ANNOUNCED	true
#endif
#ifdef MUTANT_JOINED_BLINDLY
#define SEES		false
#else
#define SEES		true
#endif
#ifdef MUTANT_RECOVERED_BLINDLY		/* recovers before it has checked the size */
#define MAY_REPLAY(p)	(at[p] == IN || at[p] == TAKEN)
#else
#define MAY_REPLAY(p)	((at[p] == IN || at[p] == TAKEN) && bound[p] >= size)
#endif

/* Reads the superblock, takes a slot, then checks the size again. */
inline joins(p) {
	if
	:: d_step { at[p] == OUT && state[p] == FREE && (MEMORY(p) || !size) ->
		at[p] = OPENED; bound[p] = size; known[p] = size }
	:: d_step { at[p] == OPENED && state[p] == FREE ->
		at[p] = TAKEN; state[p] = LIVE; reach[p] = bound[p]; cannot[p] = false }
	:: d_step { at[p] == TAKEN && state[p] == LIVE && size && !known[p] ->
		if
		:: MEMORY(p) -> bound[p] = true; known[p] = true; reach[p] = true
		:: else -> at[p] = OUT; state[p] = FREE	/* ends the join */
		fi }
	:: d_step { at[p] == TAKEN && state[p] == LIVE && (!size || known[p]) ->
		if
		:: SEES && announced && !bound[p] && MEMORY(p) ->
			bound[p] = true; reach[p] = true; at[p] = IN
		:: SEES && announced && !bound[p] && !MEMORY(p) && HELD(p) ->
			at[p] = OUT; state[p] = FREE	/* try again */
		:: else -> at[p] = IN
		fi }
	:: d_step { RUNS(p) && !op[p] && grower[p] == IDLE ->
		at[p] = OUT; state[p] = FREE }
	fi
}

/* Follows an announcement, at any time, or a new size. */
inline follows(p) {
	if
	:: d_step { RUNS(p) && announced && !size && !bound[p] && MEMORY(p) ->
		bound[p] = true; reach[p] = true }
	:: d_step { RUNS(p) && announced && !size && !MEMORY(p) && !cannot[p] -> cannot[p] = true }
	:: d_step { RUNS(p) && size && !known[p] -> assert(bound[p]); known[p] = true }
	fi
}

inline works(p) {
	if
	:: d_step { RUNS(p) && !op[p] -> op[p] = 1 + bound[p] }
	:: d_step { RUNS(p) && op[p] && used -> assert(op[p] == 2) }
	:: d_step { RUNS(p) && op[p] -> op[p] = 0 }
	:: d_step { RUNS(p) && known[p] && !used -> used = true }
	fi
}

inline looks(p, next) {
	i[p]++;
	if
	:: i[p] == 3 -> i[p] = 0; grower[p] = next
	:: else
	fi
}

inline withdraws(p) { announced = false; lock = 0; i[p] = 0; grower[p] = IDLE }

inline grows(p) {
	if
	:: d_step { RUNS(p) && grower[p] == IDLE && MEMORY(p) && !size && !HELD(p) ->
		lock = p + 1; grower[p] = HOLDS }
	:: d_step { RUNS(p) && grower[p] == HOLDS && FIRST_ANNOUNCED ->
		announced = true; cannot[0] = false; cannot[1] = false; cannot[2] = false;
		bound[p] = true; reach[p] = true; grower[p] = ANNOUNCED }
	:: d_step { RUNS(p) && grower[p] == HOLDS && !FIRST_ANNOUNCED &&
		    (i[p] == 2 || state[2] != LIVE) ->	/* only systems with the memory exist */
		announced = true; bound[p] = true; reach[p] = true; i[p] = 0; grower[p] = ANSWERED }
	:: d_step { RUNS(p) && grower[p] == ANNOUNCED && (i[p] == p || READY(i[p])) ->
		looks(p, ANSWERED) }
	:: d_step { RUNS(p) && grower[p] == ANNOUNCED && !READY(i[p]) -> withdraws(p) }
	:: d_step { RUNS(p) && grower[p] == ANSWERED && OVER(i[p]) -> looks(p, ENDED) }
	:: d_step { RUNS(p) && grower[p] == ENDED -> size = true; grower[p] = COMMITTED }
	:: d_step { RUNS(p) && grower[p] == COMMITTED ->	/* stored */
		known[p] = true; announced = false; lock = 0; grower[p] = IDLE }
	:: d_step { RUNS(p) && announced && !HELD(p) -> announced = false; lock = 0 }
	fi
}

/*
 * A system dies at any point. If it used the new part, it may leave a record with references to it.
 * Any live system recovers it.
 */
inline dies(p) {
	if
	:: d_step { deaths < DEATHS && state[p] == LIVE ->
		deaths++; state[p] = DEAD; at[p] = OUT; grower[p] = IDLE; i[p] = 0; op[p] = 0;
		record[p] = used && known[p]; known[p] = false; bound[p] = false }
	:: d_step { state[p] == DEAD && (MAY_REPLAY(0) || MAY_REPLAY(1) || MAY_REPLAY(2)) ->
		if
		:: MAY_REPLAY(0) -> assert(!record[p] || bound[0])
		:: MAY_REPLAY(1) -> assert(!record[p] || bound[1])
		:: MAY_REPLAY(2) -> assert(!record[p] || bound[2])
		fi;
		record[p] = false; state[p] = FREE; reach[p] = false;
		lock = (lock == p + 1 -> 0 : lock) }
	:: d_step { state[p] == DEAD && MEMORY(p) ->	/* by a joiner that finds no live system */
		record[p] = false; state[p] = FREE; reach[p] = false;
		lock = (lock == p + 1 -> 0 : lock) }
	fi
}

#define SOUND(p)	(!RUNS(p) || (known[p] <= bound[p] && (!used || bound[p]) && \
			 (MEMORY(p) || !size)))
#define QUIET	(deaths == DEATHS && size && used && !announced)

active proctype Systems() {
	do
	:: joins(0) :: joins(1) :: joins(2)
	:: follows(0) :: follows(1) :: follows(2)
	:: works(0) :: works(1) :: works(2)
	:: grows(0) :: grows(1) :: grows(2)
	:: dies(0) :: dies(1) :: dies(2)
	:: QUIET -> break
	od
}

active proctype Watches() {
end:	if
	:: d_step { !SOUND(0) || !SOUND(1) || !SOUND(2) -> assert(false) }
	fi
}
