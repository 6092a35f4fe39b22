/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A joiner stores its identity (docs/protocol.md, section 1, "Identity"; join.c, introduce()).
 *
 * One slot and three systems. Each takes the slot, stores the epoch with which it begins, its
 * identity, and the incarnation for which the identity is valid. Then it acknowledges epochs. The
 * process Fencer fences a system that has not stored its identity, at any step. That system is only
 * paused, and continues while another system has the slot.
 *
 * Checked: no system that has stored its identity is fenced. No epoch counts as acknowledged by a
 * live system that has not acknowledged it. When no join is in progress, the identity in the slot
 * is that of its owner (otherwise the model reports a deadlock).
 *
 * The identity is one word here: in the code, each of its words is stored and corrected separately.
 * death.pml has the recovery: here the slot of a fenced system is free immediately. Memory is
 * sequentially consistent: the swaps are locked instructions, and loads of one CPU keep their
 * order.
 *
 * check:
 * mutant: EPOCH_LOADED_LATE
 * mutant: NAMED_STORED
 * mutant: NOT_LOOKED
 * mutant: NOT_MENDED
 */
#define N	3
#define EPOCHS	3
#define FENCES	2

bool live;
byte owner, inc, incs;			/* of the slot; owner: the system that owns it */
byte epoch = 1, named, machine;		/* of the slot */
byte hot = 1;
byte acked[N];				/* the last epoch that a system has acknowledged */
bool said[N], over[N];
byte fences;

#define MINE	(live && inc == mine)
#define OTHERS_OVER	((p == 0 || over[0]) && (p == 1 || over[1]) && (p == 2 || over[2]))

/*
 * Loads the epoch. The system reads nothing of an earlier epoch, so it counts as having
 * acknowledged this one.
 */
inline load_epoch() {
	d_step { val = hot; acked[p] = hot }
}

proctype System(byte p) {
	byte mine, val, seen;

	atomic {
		!live -> incs++; mine = incs; inc = incs; owner = p; live = true;
		acked[p] = hot		/* the system has read no page yet */
	};

	/* the epoch: one that is too old only delays others */
#ifndef MUTANT_EPOCH_LOADED_LATE
	load_epoch();
#endif
#ifndef MUTANT_NOT_LOOKED
	if
	:: atomic { !MINE -> goto dead }
	:: MINE
	fi;
#endif
#ifdef MUTANT_EPOCH_LOADED_LATE
	load_epoch();
#endif
	epoch = val;

who:	/* the identity */
	if
	:: atomic { !MINE -> goto dead }
	:: MINE
	fi;
	machine = mine;
again_named:
	seen = named;
	if
	:: atomic { !MINE -> goto dead }
	:: MINE
	fi;
#ifdef MUTANT_NAMED_STORED
	atomic { named = mine; said[p] = MINE };
#else
	if
	:: atomic { named == seen -> named = mine; said[p] = MINE }
	:: atomic { named != seen -> goto again_named }
	fi;
#endif

idle:	/* sg_maintain() */
	if
	:: atomic { !MINE -> goto dead }
#ifndef MUTANT_NOT_MENDED
	:: atomic { MINE && (named != mine || machine != mine) -> goto who }
#endif
	:: atomic { MINE && epoch != hot -> acked[p] = hot; epoch = hot; goto idle }
	:: atomic {
		MINE && named == mine && machine == mine && OTHERS_OVER ->
		live = false; goto dead
	}
	/* the system leaves without a wait: the next system may join */
	:: atomic { MINE && named == mine && !OTHERS_OVER -> live = false; goto dead }
	fi;
dead:
	atomic { said[p] = false; over[p] = true }
}

/* hot.epoch grows when all live systems have acknowledged it. */
proctype Epochs() {
end:	do
	:: atomic {
		hot < EPOCHS && (!live || epoch >= hot) ->
		assert(!live || acked[owner] >= hot);
		hot++
	}
	od
}

/* UNNAMED_MS have passed. */
proctype Fencer() {
end:	do
	:: atomic {
		live && named != inc && fences < FENCES ->
		assert(!said[owner]);
		fences++; live = false
	}
	od
}

init {
	atomic { run Epochs(); run Fencer(); run System(0); run System(1); run System(2) }
}
