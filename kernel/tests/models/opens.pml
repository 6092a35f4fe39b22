/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files that other systems unlink (docs/protocol.md, section 5, "Opens").
 *
 * One inode record and three systems. Two threads of system 0 and one of system 1 look the file up,
 * open it, and close it. Every system unlinks it, evicts it, makes another file in the record,
 * withdraws bits of its past incarnations, and is killed, recovered and joined again.
 *
 * With LAPSE, system 2 joins later. Users of a fenced system may keep their open files: it is only
 * paused, or another system succeeds it. The fence sets the lapsed bit of its slot. The lapse ends
 * when the users have ended, or when the successor has marked their files as open. An evicting
 * system loads the lapsed bits, the states, the openers and the number of joins one by one.
 *
 * Checked: a file is never freed while a live system, or a user of a fenced one, has it open. When
 * all have taken their steps and a system lives, a file without links is freed (otherwise the model
 * reports a deadlock).
 *
 * The memory model matters here. Locked instructions (setting and clearing a bit, taking a lock)
 * take effect immediately, after all earlier stores of the same CPU. The link count, however, is a
 * plain store. It waits in the store buffer of its CPU while that CPU loads other words. Other
 * stores of that CPU, including the one that unlocks, come after it. A buffer of one entry is
 * enough for the only store that is followed by a load of another word.
 *
 * check: BFS
 * check: LAPSE OPENS=1 BFS
 * mutant: NO_FENCE BFS
 * mutant: LOOK_FIRST BFS
 * mutant: GENERATION_FIRST BFS
 * mutant: NO_COUNT BFS
 * mutant: BITS_OF_THE_DEAD BFS
 * mutant: BLIND BFS
 * mutant: LAPSE_CLOSES LAPSE OPENS=1 REUSES=0 BFS
 * mutant: DEAD_FIRST LAPSE OPENS=1 REUSES=0 BFS
 * mutant: STATES_ONLY LAPSE OPENS=1 REUSES=0 BFS
 * mutant: ENDS_FIRST LAPSE OPENS=1 REUSES=0 BFS
 * mutant: JOINS_UNSEEN LAPSE OPENS=1 REUSES=0 BFS
 * mutant: SAME_SLOT LAPSE OPENS=1 REUSES=0 BFS
 */
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef REUSES
#define REUSES 1
#endif
#ifndef OPENS
#define OPENS 2 /* of each thread */
#endif

mtype = { FREE, LIVE, DEAD };		/* sg_slot.state; death.pml has RECOVERING */
mtype = { IDLE, FOUND, SET, LINKED, SAME, OPEN };	/* a thread that opens */
mtype = { FILLED, LOCKED, UNLINKED, FENCED, SCANS };	/* a system that changes the inode */

/* Shared: the slots, the record, its lock */
mtype state[3] = LIVE;
bool used = true, linked = true;
byte generation, openers;
/* slot + 1 of the lock's holder, and of the ledger that has the inode */
byte lock, deferred_by;

/* Of a system */
bool running[3] = true;
byte count[3];			/* openers of the record, of any generation */
mtype change[3] = IDLE;
byte seen[3];			/* openers, as loaded */
bool withdraws[3];

/* The unlink in a store buffer: slot + 1 of its system */
byte buffer;

/* The lapse */
#ifdef LAPSE
#define MAY_LAPSE	true
#else
#define MAY_LAPSE	false
#endif
byte lapsed, joins;		/* hot.lapsed, hot.incarnation */
bool users[3];			/* the system has ended or is paused, and its users keep their files */
byte heir, heired;		/* slot + 1 of the successor; the threads that it has taken over */
byte succeeded;			/* slot + 1 of the system that it succeeds */
bool marked;			/* the successor has marked the files as open, and serves calls */
byte step[3], before[3], mask[3];	/* of a system that looks for openers */

/* Of a thread */
/* threads 0 and 1 are system 0's, thread 2 is system 1's, until a successor takes them over */
#define SYSTEM(t)	(heired & BIT(t) -> heir - 1 : (t) / 2)
mtype thread[3] = IDLE;
byte wants[3], opens[3];	/* generation of the wanted file; number of attempts to open */

bool gone[3];			/* the system never joins again */
byte deaths, reuses;

#define RUNS(p)		(running[p] && state[p] == LIVE)
#define BIT(p)		(1 << (p))
#define COUNTS(q)	(seen[p] & BIT(q) && q != p && state[q] == LIVE)
#define LINKS(p)	(linked && buffer != p + 1)	/* as p sees them */
#define SERVED(t)	(!users[SYSTEM(t)] && (!(heired & BIT(t)) || marked))
#define OPENED(t)	(thread[t] == OPEN && wants[t] == generation && \
			 (running[SYSTEM(t)] || users[SYSTEM(t)]))

/* The rules, and the mutants that break them. */
#ifdef MUTANT_NO_FENCE
#define STORED(p)	true
#else
#define STORED(p)	(buffer != p + 1)
#endif
#ifdef MUTANT_LOOK_FIRST		/* checks the links, then sets the bit */
#define FIRST_SET	false
#else
#define FIRST_SET	true
#endif
#ifdef MUTANT_GENERATION_FIRST
#define FIRST_LINKS	false
#else
#define FIRST_LINKS	true
#endif
#ifdef MUTANT_NO_COUNT			/* each close clears the bit */
#define LAST_OUT(p)	true
#else
#define LAST_OUT(p)	(count[p] == 0)
#endif
#ifdef MUTANT_BITS_OF_THE_DEAD		/* never withdrawn */
#define WITHDRAWN	false
#else
#define WITHDRAWN	true
#endif

/* checks which systems have the file open, then withdraws bits */
#ifdef MUTANT_BLIND
#define BLIND		true
#else
#define BLIND		false
#endif

#ifdef MUTANT_LAPSE_CLOSES		/* a lapsed slot's bit does not count */
#define LAPSED		0
#else
#define LAPSED		lapsed
#endif
#ifdef MUTANT_DEAD_FIRST		/* fences, then sets the lapsed bit */
#define LAPSE_FIRST	false
#else
#define LAPSE_FIRST	true
#endif
#ifdef MUTANT_STATES_ONLY		/* loads the lapsed bits only before the states */
#define LAPSED_AGAIN	0
#else
#define LAPSED_AGAIN	LAPSED
#endif
#ifdef MUTANT_ENDS_FIRST		/* the successor ends the lapse, then marks the files */
#define MARKED_FIRST	false
#else
#define MARKED_FIRST	true
#endif
#ifdef MUTANT_JOINS_UNSEEN		/* does not look whether a system has joined meanwhile */
#define SAME_JOINS(p)	true
#else
#define SAME_JOINS(p)	(joins == before[p])
#endif
#ifdef MUTANT_SAME_SLOT			/* a system joins in a lapsed slot, and withdraws its bits */
#define MAY_JOIN(p)	true
#else
#define MAY_JOIN(p)	(!(lapsed & BIT(p)))
#endif

#define HELD_BY(q)	(openers & BIT(q) && q != p && (state[q] == LIVE || LAPSED & BIT(q)))
#define MAY_EVICT(p)	(!count[p] && !HELD_BY(0) && !HELD_BY(1) && !HELD_BY(2))
#define STALE(p)	(RUNS(p) && WITHDRAWN && openers & BIT(p) && !count[p] && change[p] != SCANS && \
			 used && !linked && !withdraws[p])

inline leave(t) {
	count[SYSTEM(t)]--;
	openers = (LAST_OUT(SYSTEM(t)) -> openers & ~BIT(SYSTEM(t)) : openers);
	thread[t] = IDLE; wants[t] = 0
}
inline enter(t) { count[SYSTEM(t)]++; openers = openers | BIT(SYSTEM(t)) }

/*
 * A file found by name may be freed before it is opened. A thread waits for the end of its own
 * system's eviction.
 */
inline opens_and_closes(t) {
	if
	:: d_step {
		RUNS(SYSTEM(t)) && thread[t] == IDLE && opens[t] < OPENS && used && linked ->
		thread[t] = FOUND; wants[t] = generation; opens[t]++
	}
	:: d_step {
		FIRST_SET && RUNS(SYSTEM(t)) && thread[t] == FOUND && change[SYSTEM(t)] != SCANS ->
		enter(t); thread[t] = SET
	}
	:: d_step {
		RUNS(SYSTEM(t)) && FIRST_LINKS && thread[t] == (FIRST_SET -> SET : FOUND) ->
		if
		:: used && linked -> thread[t] = LINKED
		:: else -> if :: FIRST_SET -> leave(t) :: else -> thread[t] = IDLE; wants[t] = 0 fi
		fi
	}
	:: d_step {
		RUNS(SYSTEM(t)) && thread[t] == (FIRST_LINKS -> LINKED : SET) ->
		if
		:: generation != wants[t] ->
			if :: FIRST_SET -> leave(t) :: else -> thread[t] = IDLE; wants[t] = 0 fi
		:: else -> thread[t] = (FIRST_SET && FIRST_LINKS -> OPEN : SAME)
		fi
	}
	:: d_step {	/* the last step of a thread with the other order of steps */
		RUNS(SYSTEM(t)) && thread[t] == SAME && change[SYSTEM(t)] != SCANS ->
		if
		:: !FIRST_SET -> enter(t); thread[t] = OPEN
		:: FIRST_SET && used && linked -> thread[t] = OPEN; assert(generation == wants[t])
		:: else -> leave(t)
		fi
	}
	:: d_step { RUNS(SYSTEM(t)) && SERVED(t) && thread[t] == OPEN -> leave(t) }
	fi
}

inline unlock(p) { lock = 0; change[p] = IDLE; seen[p] = 0; step[p] = 0; before[p] = 0; mask[p] = 0 }

inline frees(p) {
	assert(!OPENED(0) && !OPENED(1) && !OPENED(2));
	used = false; linked = false; buffer = 0; deferred_by = 0; unlock(p)
}

#define OTHERS(p)	(seen[p] & (7 - BIT(p)))
#define LIVE_BIT(q)	(state[q] == LIVE -> BIT(q) : 0)

/* anybody_has(), one load after the other */
#define AT(p, n)	(MAY_LAPSE && RUNS(p) && change[p] == SCANS && step[p] == n)
inline looks_for_openers(p) {
	if
	:: d_step {
		AT(p, 0) ->
		if
		:: !OTHERS(p) -> frees(p)
		:: else -> before[p] = joins; step[p] = 1
		fi
	}
	:: d_step { AT(p, 1) -> mask[p] = LAPSED; step[p] = 2 }
	:: d_step { AT(p, 2) -> mask[p] = mask[p] | LIVE_BIT(0); step[p] = 3 }
	:: d_step { AT(p, 3) -> mask[p] = mask[p] | LIVE_BIT(1); step[p] = 4 }
	:: d_step { AT(p, 4) -> mask[p] = mask[p] | LIVE_BIT(2); step[p] = 5 }
	:: d_step { AT(p, 5) -> mask[p] = mask[p] | LAPSED_AGAIN; step[p] = 6 }
	:: d_step { AT(p, 6) -> seen[p] = openers; step[p] = 7 }
	:: d_step { AT(p, 7) && OTHERS(p) & mask[p] && buffer != p + 1 -> unlock(p) }
	:: d_step {
		AT(p, 7) && !(OTHERS(p) & mask[p]) ->
		if
		:: SAME_JOINS(p) -> frees(p)
		:: else -> before[p] = 0; mask[p] = 0; step[p] = 0
		fi
	}
	fi
}

/* Unlinks the file, and evicts it immediately if the system does not have it open, or later. */
inline unlinks_and_evicts(p) {
	if
	:: d_step { RUNS(p) && change[p] == IDLE && !lock && LINKS(p) && used -> lock = p + 1; change[p] = LOCKED }
	:: d_step {
		RUNS(p) && change[p] == IDLE && !lock && !linked && used && deferred_by == p + 1 && MAY_EVICT(p) ->
		lock = p + 1; change[p] = FENCED
	}
	:: d_step { RUNS(p) && change[p] == LOCKED -> buffer = p + 1; deferred_by = p + 1; change[p] = UNLINKED }
	:: d_step { RUNS(p) && change[p] == UNLINKED && STORED(p) -> change[p] = FENCED }
	:: d_step {
		RUNS(p) && change[p] == FENCED && !count[p] -> seen[p] = openers; change[p] = SCANS
	}
	:: d_step { RUNS(p) && change[p] == FENCED && count[p] && buffer != p + 1 -> unlock(p) }
	:: d_step {
		!MAY_LAPSE && RUNS(p) && change[p] == SCANS && (COUNTS(0) || COUNTS(1) || COUNTS(2)) &&
		buffer != p + 1 ->
		unlock(p)
	}
	:: d_step {
		!MAY_LAPSE && RUNS(p) && change[p] == SCANS && !COUNTS(0) && !COUNTS(1) && !COUNTS(2) ->
		frees(p)
	}
	:: d_step {	/* sg_settle_free() */
		RUNS(p) && deferred_by && deferred_by != p + 1 && state[(deferred_by -> deferred_by - 1 : 0)] == FREE ->
		deferred_by = p + 1
	}
	fi
}

/*
 * Makes another file in the record: first its generation, then its links. Then lookups can find its
 * name.
 */
inline makes(p) {
	if
	:: d_step {
		RUNS(p) && change[p] == IDLE && !lock && !used && reuses < REUSES ->
		lock = p + 1; change[p] = FILLED; generation++; openers = 0; reuses++
	}
	:: d_step { RUNS(p) && change[p] == FILLED -> used = true; linked = true; unlock(p) }
	fi
}

/* sg_maintain(), under a lock that opens and closes take as well */
inline withdraws_bits(p) {
	if
	:: d_step { STALE(p) && !BLIND -> openers = openers & ~BIT(p) }
	:: d_step { STALE(p) && BLIND -> withdraws[p] = true }
	:: d_step { RUNS(p) && withdraws[p] -> withdraws[p] = false; openers = openers & ~BIT(p) }
	fi
}

/*
 * Events at any time: a store buffer drains; a system dies, with its store buffer or after it has
 * drained; a death becomes known; a slot is recovered; a system joins again, or never again.
 */
inline happens(p) {
	if
	:: d_step { buffer == p + 1 -> linked = false; buffer = 0 }
	:: d_step {
		deaths < DEATHS && running[p] ->
		deaths++; running[p] = false; users[p] = MAY_LAPSE;
		count[p] = 0; change[p] = IDLE; seen[p] = 0; withdraws[p] = false;
		step[p] = 0; before[p] = 0; mask[p] = 0;
		if :: SYSTEM(0) == p -> dies(0) :: else fi;
		if :: SYSTEM(1) == p -> dies(1) :: else fi;
		if :: SYSTEM(2) == p -> dies(2) :: else fi
	}
	:: d_step {
		users[p] && state[p] == (LAPSE_FIRST -> LIVE : DEAD) && !(lapsed & BIT(p)) ->
		lapsed = lapsed | BIT(p)
	}
	:: d_step {
		state[p] == LIVE && !running[p] && (lapsed & BIT(p) || !users[p] || !LAPSE_FIRST) ->
		state[p] = DEAD
	}
	:: d_step {	/* replayed, which frees its locks */
		state[p] == DEAD && buffer != p + 1 ->
		state[p] = FREE; lock = (lock == p + 1 -> 0 : lock)
	}
	:: d_step {
		state[p] == FREE && !gone[p] && MAY_JOIN(p) ->
		state[p] = LIVE; running[p] = true; joins++
	}
	:: d_step { state[p] == FREE && !gone[p] -> gone[p] = true }
	:: d_step {	/* its users have ended, and the lapse then ends after some time */
		users[p] && (lapsed & BIT(p) || state[p] == FREE) && state[p] != LIVE ->
		users[p] = false; ends(0, p); ends(1, p); ends(2, p)
	}
	:: d_step {
		lapsed & BIT(p) && !users[p] && succeeded != p + 1 && state[p] != LIVE ->
		lapsed = lapsed & ~BIT(p)
	}
	fi
}
inline dies(t) {
	thread[t] = (users[(t) / 2] && thread[t] == OPEN -> OPEN : IDLE);
	wants[t] = (thread[t] == OPEN -> wants[t] : 0)
}
inline ends(t, p) {
	if :: SYSTEM(t) == p -> thread[t] = IDLE; wants[t] = 0 :: else fi
}

/*
 * System 2 joins after the fence of system p, and succeeds it. It knows the files of the users
 * before it joins, then marks them, and ends the lapse.
 */
#define KEEPS(t, p)	((t) / 2 == p && thread[t] == OPEN -> 1 : 0)
inline succeeds(p) {
	if
	:: d_step {
		MAY_LAPSE && users[p] && !heir && lapsed & BIT(p) && state[p] != LIVE &&
		state[2] == FREE && !gone[2] ->
		state[2] = LIVE; running[2] = true; joins++; heir = 3; users[p] = false;
		heired = KEEPS(0, p) | KEEPS(1, p) << 1 | KEEPS(2, p) << 2;
		count[2] = KEEPS(0, p) + KEEPS(1, p) + KEEPS(2, p);
		succeeded = p + 1
	}
	:: d_step {
		succeeded == p + 1 && !marked && (MARKED_FIRST || !(lapsed & BIT(p))) ->
		assert(!heired || used);
		openers = (heired -> openers | BIT(2) : openers); marked = true
	}
	:: d_step {
		succeeded == p + 1 && lapsed & BIT(p) && (marked || !MARKED_FIRST) ->
		lapsed = lapsed & ~BIT(p)
	}
	fi
}

#define FINISHED	(!used || linked || (!running[0] && !running[1] && !running[2]))

active proctype Systems() {
	if
	:: d_step { MAY_LAPSE -> state[2] = FREE; running[2] = false }
	:: !MAY_LAPSE
	fi;
	do
	:: opens_and_closes(0) :: opens_and_closes(1) :: opens_and_closes(2)
	:: unlinks_and_evicts(0) :: unlinks_and_evicts(1) :: unlinks_and_evicts(2)
	:: makes(0) :: makes(1) :: makes(2)
	:: withdraws_bits(0) :: withdraws_bits(1) :: withdraws_bits(2)
	:: happens(0) :: happens(1) :: happens(2)
	:: looks_for_openers(0) :: looks_for_openers(1) :: looks_for_openers(2)
	:: succeeds(0) :: succeeds(1)
	:: FINISHED -> break
	od
}
