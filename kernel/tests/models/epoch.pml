/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs: no page is reused while a system may still read it (docs/protocol.md, section 4).
 *
 * One file of one page, and three systems, each with a slot. At any time a system does one of these
 * steps. It looks (loads the file's entry, uses the page for any time, ends its look), or retires
 * the page in a transaction (which defers a free). It acknowledges, advances the epoch, reclaims,
 * or takes over the deferred free of a free slot. It joins, leaves, or dies. A paused system takes
 * no step. A reclaimed page is immediately reused in the file, and the run continues.
 *
 * Checked: when a page is reused, no live system still uses it as the old page; no deferred free is
 * reclaimed twice.
 *
 * Only the distances of epochs matter. So the model keeps ages instead of epochs: how often
 * hot.epoch has grown since, with FAR for all larger ages. So runs are endless, without a bound on
 * epochs or deaths. A value that is loaded first and used later has its own age. A loop over slots
 * is one step, which may or may not include a system that is still joining: that system may have
 * joined after the loop has passed its slot. The same holds for a system that has completed its
 * join since: its epoch is not older than the one with which the loop compares.
 *
 * System 0 retires, systems 0 and 1 look; all three take all other steps. A wrong reuse needs one
 * looking system: the retiring system or another one.
 *
 * Sequentially consistent memory is enough here. A look and the quiesce that waits for it are
 * ordered by sg_look_wait(), which is a full fence. Joining, pushing and taking over are locked
 * instructions. All other communication is a release store of one word that other systems acquire.
 *
 * check: BFS
 * mutant: PLUS_ONE BFS
 * mutant: NO_TX_WAIT BFS
 * mutant: NO_LOOK_WAIT BFS
 * mutant: SKIP_SILENT BFS
 * mutant: ALONE_FIRST BFS
 * mutant: OLD_STAMP BFS
 * mutant: NO_SLOT_LOCK BFS
 */
#define FAR 4

mtype = { FREE, LIVE, DEAD };		/* sg_slot.state; death.pml has RECOVERING */
mtype = { NONE, YOUNG, OLD };		/* a look or transaction; OLD: begun before the quiesce */
mtype = { OUT, SWAPPED, LOADED, IN };	/* phases of a join */

/* Shared */
mtype state[3] = FREE;
byte epoch[3];			/* age of sg_slot.epoch */
bool hooked = true;		/* the page is in the file */
byte deferred_in, deferred_age;		/* slot + 1: the slot whose ledger has it */
byte slot_lock;			/* slot + 1: the system that takes over ... */
byte take_from, take_age;	/* ... from this slot */

/* Of a system */
mtype phase[3] = OUT;
mtype look[3] = NONE;
bool uses[3];
bool acks[3];			/* between seeing an epoch and acknowledging it */
/* age of the epoch that the system has loaded, to join or to acknowledge */
byte age[3];
bool reclaimable[3];		/* the system has chosen a deferred free of its ledger */
/* number of other slots that it has found free; 3: it has also quiesced */
byte alone[3];

/* The transaction that holds the inode's lock, of system 0 */
mtype tx = NONE;
byte tx_age;

#define RUNS(p)		(phase[p] == IN && state[p] == LIVE)
#define LATER(age)	age = (age < FAR -> age + 1 : FAR)
#define LATER_IF(yes, age)	age = ((yes) && age < FAR -> age + 1 : age)

/* The rules, and the mutants that break them. */
#ifdef MUTANT_PLUS_ONE
#define AHEAD		1
#else
#define AHEAD		2
#endif
/* does not wait for a system that is not about to acknowledge */
#ifdef MUTANT_SKIP_SILENT
#define COUNTS(s)	(state[s] == LIVE && phase[s] == IN && acks[s])
#else
#define COUNTS(s)	(state[s] == LIVE && phase[s] != SWAPPED && phase[s] != LOADED)
#endif
#ifdef MUTANT_NO_TX_WAIT
#define TX_OVER(p)	true
#else
#define TX_OVER(p)	(p != 0 || tx != OLD)
#endif
#ifdef MUTANT_NO_LOOK_WAIT
#define LOOKS_OVER(p)	true
#else
#define LOOKS_OVER(p)	(look[p] != OLD)
#endif
/* checks whether it is the only system, then chooses its deferred frees */
#ifdef MUTANT_ALONE_FIRST
#define CHOSEN(p)	true
#else
#define CHOSEN(p)	reclaimable[p]
#endif
#ifdef MUTANT_OLD_STAMP			/* deferred frees of dead systems keep their epochs */
#define ADOPTED_AGE	deferred_age
#define TAKEN_AGE	deferred_age
#else
#define ADOPTED_AGE	0
#define TAKEN_AGE	take_age
#endif
#ifdef MUTANT_NO_SLOT_LOCK
#define MAY_ADOPT	true
#else
#define MAY_ADOPT	(!slot_lock)
#endif

inline forget(p) {
	phase[p] = OUT; look[p] = NONE; uses[p] = false; acks[p] = false; age[p] = 0;
	reclaimable[p] = false; alone[p] = 0
}

/* sg_join(): the slot's epoch is its last owner's until the joiner stores its own. sg_leave() */
inline comes_and_goes(p) {
	if
	:: d_step { phase[p] == OUT && state[p] == FREE -> state[p] = LIVE; phase[p] = SWAPPED }
	:: d_step { phase[p] == SWAPPED -> phase[p] = LOADED; age[p] = 0 }
	:: d_step {
		phase[p] == LOADED && MAY_ADOPT ->
		phase[p] = IN; epoch[p] = age[p]; age[p] = 0;
		if
		:: deferred_in == p + 1 -> reclaimable[p] = true; deferred_age = ADOPTED_AGE
		:: else
		fi
	}
	:: d_step {
		RUNS(p) && look[p] == NONE && (p != 0 || tx == NONE) && slot_lock != p + 1 ->
		state[p] = FREE; epoch[p] = 0; forget(p)
	}
	fi
}

inline looks(p) {
	if
	:: d_step { RUNS(p) && look[p] == NONE -> look[p] = YOUNG }
	:: d_step { look[p] != NONE && !uses[p] && hooked -> uses[p] = true }
	:: d_step { look[p] != NONE -> look[p] = NONE; uses[p] = false }
	fi
}

/*
 * sg_defer_free() at the beginning of the transaction, which is the worst time: later the deferred
 * free would be younger. A death shows whether its record is valid by then.
 */
inline retires() {
	if
	:: d_step { RUNS(0) && tx == NONE && hooked -> tx = YOUNG; tx_age = 0 }
	:: d_step { RUNS(0) && tx != NONE -> apply(); reclaimable[0] = true; tx = NONE; tx_age = 0 }
	fi
}
inline apply() { hooked = false; deferred_in = 1; deferred_age = tx_age }

/* try_ack() */
inline acknowledges(p) {
	if
	:: d_step {
		RUNS(p) && !acks[p] && epoch[p] ->
		acks[p] = true; age[p] = 0;
		look[p] = (look[p] == YOUNG -> OLD : look[p]);
		tx = (p == 0 && tx == YOUNG -> OLD : tx)
	}
	:: d_step {
		RUNS(p) && acks[p] && TX_OVER(p) && LOOKS_OVER(p) ->
		acks[p] = false; epoch[p] = age[p]; age[p] = 0
	}
	fi
}

/* sg_epoch_push() */
#define SEEN_BY(s)	(!COUNTS(s) || !epoch[s])
inline pushes() {
	d_step {
		SEEN_BY(0) && SEEN_BY(1) && SEEN_BY(2) ->
		LATER_IF(state[0] == LIVE && phase[0] != SWAPPED, epoch[0]);
		LATER_IF(state[1] == LIVE && phase[1] != SWAPPED, epoch[1]);
		LATER_IF(state[2] == LIVE && phase[2] != SWAPPED, epoch[2]);
		LATER_IF(phase[0] == LOADED || acks[0], age[0]);
		LATER_IF(phase[1] == LOADED || acks[1], age[1]);
		LATER_IF(phase[2] == LOADED || acks[2], age[2]);
		LATER_IF(deferred_in, deferred_age);
		LATER_IF(slot_lock, take_age);
		LATER_IF(tx != NONE, tx_age)
	}
}

/* sg_reclaim(): the epochs have passed, or there is no other system */
#define OVER_FOR(s)	(!COUNTS(s) || deferred_age >= epoch[s] + AHEAD)
#define OTHER(p, n)	((p + 1 + n) % 3)
inline reclaims(p) {
	if
	:: d_step { RUNS(p) && reclaimable[p] && OVER_FOR(0) && OVER_FOR(1) && OVER_FOR(2) -> reclaim(p) }
	:: d_step {
		RUNS(p) && CHOSEN(p) && alone[p] < 2 && state[OTHER(p, alone[p])] == FREE -> alone[p]++
	}
	:: d_step {
		RUNS(p) && reclaimable[p] && alone[p] == 2 ->
		alone[p] = 3; look[p] = (look[p] == YOUNG -> OLD : look[p])
	}
	:: d_step { RUNS(p) && reclaimable[p] && alone[p] == 3 && LOOKS_OVER(p) -> reclaim(p) }
	fi
}
inline reclaim(p) {
	assert(deferred_in == p + 1 && !hooked);
	assert(!uses[0] && !uses[1]);
	deferred_in = 0; deferred_age = 0; reclaimable[p] = false; alone[p] = 0; hooked = true
}

/* sg_settle_free() */
inline takes_over(p, s) {
	if
	:: d_step {
		RUNS(p) && !slot_lock && state[s] == FREE && deferred_in == s + 1 ->
		slot_lock = p + 1; take_from = s; take_age = 0
	}
	:: d_step {
		RUNS(p) && slot_lock == p + 1 && take_from == s ->
		deferred_in = p + 1; deferred_age = TAKEN_AGE; reclaimable[p] = true;
		slot_lock = 0; take_from = 0; take_age = 0
	}
	fi
}

/* A system dies, and its stores stay. Another system fences and replays it, and frees the slot. */
inline dies(p) {
	if
	:: d_step { phase[p] != OUT -> forget(p) }
	:: d_step { phase[p] == OUT && state[p] == LIVE -> state[p] = DEAD; epoch[p] = 0 }
	:: d_step { p == 0 && state[0] == DEAD && tx != NONE -> apply(); tx = NONE; tx_age = 0 }
	:: d_step { p == 0 && state[0] == DEAD && tx != NONE -> tx = NONE; tx_age = 0 }
	:: d_step {
		state[p] == DEAD && (p != 0 || tx == NONE) ->
		state[p] = FREE;
		if
		:: slot_lock == p + 1 -> slot_lock = 0; take_from = 0; take_age = 0
		:: else
		fi
	}
	fi
}

active proctype Systems() {
	do
	:: comes_and_goes(0) :: comes_and_goes(1) :: comes_and_goes(2)
	:: looks(0) :: looks(1)
	:: retires()
	:: acknowledges(0) :: acknowledges(1) :: acknowledges(2)
	:: pushes()
	:: reclaims(0) :: reclaims(1) :: reclaims(2)
	:: takes_over(0, 1) :: takes_over(0, 2)
	:: takes_over(1, 0) :: takes_over(1, 2)
	:: takes_over(2, 0) :: takes_over(2, 1)
	:: dies(0) :: dies(1) :: dies(2)
	od
}
