/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots, an owned lock, a journal, and deaths (docs/protocol.md, sections 1 to 3).
 *
 * Three systems and three slots, so that slots run out when systems that died come back. A system
 * joins, makes one transaction of two words under the lock, recovers dead systems, and leaves. The
 * process Killer ends a system before any of its steps. The process Fencer fences a dead system, at
 * any later time.
 *
 * Checked: only the lock's holder stores under the lock. A system that gets the lock sees exactly
 * the committed values. Only one recoverer makes the stores of a replay. Waiting blocks in this
 * model, and a live system does not leave before all dead ones have been recovered. So a lock or
 * slot that is never released is a deadlock. Every loop uses up a death, so a run cannot be endless
 * in another way.
 *
 * DEATHS is the number of systems that die in one run. Options that cost more states:
 *   REBOOT  a dead system boots again, as a new incarnation; otherwise it stays dead
 *   ALL_AT_ONCE  the first death kills all systems; two of them boot again
 *   LEASE  a paused system may be fenced as well, except between a check and its stores
 *          (docs/protocol.md, "Limits of the lease"): it continues, detects the fence, and joins
 *          again
 *   NAMES  guards: a guard that finds the name of its machine in a slot fences that slot when the
 *          machine has exited; checked: no live system is fenced
 *   REACH  system 0's transaction also makes an inode: with the second word it gets a name, and
 *          then other systems lock and change it; checked: no replay stores the old word again
 *   BITS   checked: a bit that a dead waiter left, or that a dead system was about to clear, costs
 *          one useless hand-over
 *
 * Sequentially consistent memory is enough here. Every change of a slot and every lock operation is
 * a locked instruction. x86 keeps all stores of one CPU in their order. Where a store must be
 * visible before a load (waiters, HANDED), waiters check repeatedly.
 *
 * check: DEATHS=3
 * long: DEATHS=2 REBOOT BITS
 * long: DEATHS=1 REBOOT ALL_AT_ONCE
 * long: DEATHS=2 LEASE
 * check: DEATHS=1 REBOOT LEASE NAMES
 * check: DEATHS=2 REACH
 * check: DEATHS=1 REBOOT REACH
 * mutant: DEAD_HOLD_NOTHING DEATHS=1
 * mutant: RELEASE_FIRST DEATHS=1
 * mutant: UNLOCK_FIRST DEATHS=1
 * mutant: ANY_JOINER DEATHS=1 REBOOT ALL_AT_ONCE
 * mutant: RECOVERER_BY_SLOT DEATHS=2 LEASE
 * mutant: RECOVERER_LIKE_LOCK DEATHS=2 LEASE
 * mutant: PLAIN_LEAVE DEATHS=1 LEASE
 * mutant: DEAD_UNLOCK DEATHS=1 LEASE
 * mutant: NAME_OF_THE_LAST DEATHS=1 REBOOT NAMES
 * mutant: GUARD_OF_THE_LAST DEATHS=1 REBOOT ALL_AT_ONCE NAMES
 * mutant: STALE_BIT DEATHS=2 REBOOT BITS
 * mutant: NEW_UNLOCKED DEATHS=1 REACH
 * mutant: NEW_UNLOCKED_FIRST DEATHS=1 REACH
 */
#define N 3
#ifndef DEATHS
#define DEATHS 1
#endif

/* sg_slot.state: state, incarnation (per slot: only pairs are ever compared), recoverer */
mtype = { FREE, LIVE, DEAD, RECOVERING };
mtype state[N] = LIVE;
byte inc[N] = 1, by[N], by_inc[N];	/* by: slot + 1 */

/* sg_lock: slot + 1 or 0, incarnation, HANDED; a bit per slot that waits */
byte lock_slot, lock_inc, waiters;
bool handed;

/*
 * The two words that the lock protects, and one record per slot for both. The model keeps the age
 * of a value instead of the value: the number of commits (2: or more) since it was current.
 */
byte word_a, word_b, area_val[N];
bool area_head[N];

/* The state of each system, for the checks, and for Killer and Fencer, which use it. */
bool running[N] = true;
byte my_slot[N], my_inc[N];	/* slot + 1 */
byte deaths;

#define MINE		(state[my_slot[p] - 1] == LIVE && inc[my_slot[p] - 1] == my_inc[p])
#define IS_AT(q, s)	(running[q] && my_slot[q] == (s) + 1 && my_inc[q] == inc[s])
#define LIVES(s)	(state[s] == LIVE && (IS_AT(0, s) || IS_AT(1, s) || IS_AT(2, s)))
#define BY_ITSELF(s)	(state[s] == RECOVERING && by[s] == (s) + 1)
#define JOINS(q, s)	(running[q] && my_slot[q] == (s) + 1 && my_inc[q] == by_inc[s])

/* Frees the locks of (slot + 1, incarnation). Once true, this stays true. */
#ifdef MUTANT_DEAD_HOLD_NOTHING
#define GONE(s1, i)	(state[(s1) - 1] != LIVE || inc[(s1) - 1] != (i))
#else
#define GONE(s1, i)	(state[(s1) - 1] == FREE || inc[(s1) - 1] != (i))
#endif

#if defined(MUTANT_RECOVERER_BY_SLOT)
#define BY_GONE(s)	(state[by[s] - 1] != LIVE)
#elif defined(MUTANT_RECOVERER_LIKE_LOCK)
#define BY_GONE(s)	GONE(by[s], by_inc[s])
#else
#define BY_GONE(s)	(state[by[s] - 1] != LIVE || inc[by[s] - 1] != by_inc[s])
#endif
#define RECOVERABLE(s)	(state[s] == DEAD || (state[s] == RECOVERING && !BY_ITSELF(s) && BY_GONE(s)))
#define BEING_RECOVERED	(state[r] == RECOVERING && by[r] == my_slot[p] && by_inc[r] == my_inc[p])

/* A joiner without a slot recovers a dead slot, and acts for that slot. */
#ifdef MUTANT_ANY_JOINER
#define TAKEABLE(s)	(state[s] == DEAD || BY_ITSELF(s))
#else
#define TAKEABLE(s)	(state[s] == DEAD)
#endif

#define LOCK_MINE	(lock_slot == my_slot[p] && lock_inc == my_inc[p])
#define MAY_TAKE	(!lock_slot || (handed && LOCK_MINE) || GONE(lock_slot, lock_inc))
#define HOLDS		(LOCK_MINE && !handed)
#define WAITS_FOR(s)	(waiters & (1 << (s)) && state[s] == LIVE)
#define ALL_WELL(s)	(state[s] == FREE || LIVES(s))

#define OLDER(age)	age = (age < 2 -> age + 1 : 2)
#define OLDER_IN(s)	area_val[s] = (area_head[s] && area_val[s] < 2 -> area_val[s] + 1 : area_val[s])

/* LEASE: between the check of its slot and the following stores, no system is paused for long. */
#ifdef LEASE
bool storing[N];
#define STORES(yes)	storing[p] = yes
#else
#define STORES(yes)	skip
#endif
inline look_at_own_slot() {
	if
	:: atomic { MINE -> STORES(true) }
	:: atomic { !MINE -> goto declared_dead }
	fi
}

/* NAMES: sg_slot.machine, and the incarnation for which it counts. */
#ifdef NAMES
byte machine[N], named[N];
inline introduce() {
	machine[my_slot[p] - 1] = p;
	named[my_slot[p] - 1] = my_inc[p]
}
#ifdef MUTANT_NAME_OF_THE_LAST
#define NAMED(q, s)	(machine[s] == q)
#else
#define NAMED(q, s)	(machine[s] == q && named[s] == inc[s])
#endif
#else
#define introduce()	skip
#endif

/* BITS: bits in waiters without a waiting system, and the number of useless hand-overs. */
#ifdef BITS
bool waiting[N], clearing[N];
byte stale_bits, in_vain;
#define WAIT(yes)	waiting[p] = yes
#define CLEARS(yes)	clearing[p] = yes
#define COMES(q)	(running[q] && waiting[q] && my_slot[q] == lock_slot)
inline count_stale(p) {
	if
	:: waiting[p] -> stale_bits++; waiting[p] = false
	:: else
	fi;
	if
	:: clearing[p] -> stale_bits++; clearing[p] = false
	:: else
	fi
}
inline count_in_vain() {
	if
	:: !COMES(0) && !COMES(1) && !COMES(2) -> in_vain++
	:: else
	fi;
	assert(in_vain <= stale_bits)
}
#else
#define WAIT(yes)	skip
#define CLEARS(yes)	skip
#define count_stale(p)	skip
#define count_in_vain()	skip
#endif

/*
 * REACH: the new inode's word and its lock. No system finds the inode before it has a name. A
 * change of its word is one transaction of another system, which is one step here.
 */
#ifdef REACH
byte word_n = 1, area_n[N], n_slot, n_inc;
bool made, area_new[N], named_n, linked;
#define N_FREE		(!n_slot || GONE(n_slot, n_inc))
#define LINKED		(!named_n || linked)
inline make_inode(s) {
	if
	:: p == 0 && !made ->
		made = true; area_new[s] = true; area_n[s] = 0;
#ifndef MUTANT_NEW_UNLOCKED
		n_slot = my_slot[p]; n_inc = my_inc[p];
#endif
	:: else
	fi
}
inline store_inode(s) {
	if
	:: d_step { area_new[s] -> assert(!area_n[s]); word_n = area_n[s] }
	:: !area_new[s]
	fi
}
inline name_inode(s)	{ named_n = named_n || area_new[s] }
inline forget_inode(s)	{ area_new[s] = false; area_n[s] = 0 }
inline unlock_inode() {
	if
	:: n_slot == my_slot[p] && n_inc == my_inc[p] -> n_slot = 0; n_inc = 0
	:: else
	fi
}
#define OLDER_N(s)	area_n[s] = (area_new[s] -> 1 : 0)
inline link_inode() {
	assert(!word_n);
	linked = true; OLDER_N(0); OLDER_N(1); OLDER_N(2)
}
#else
#define LINKED		true
#define make_inode(s)	skip
#define name_inode(s)	skip
#define forget_inode(s)	skip
#endif

/* ALL_AT_ONCE: two of the three boot again, which limits the number of states. */
#ifdef ALL_AT_ONCE
#define BOOTS(q)	((q) != 2)
#else
#define BOOTS(q)	true
#endif

/* sg_slot_take(): the swap. */
inline take_slot(s) {
	state[s] = LIVE; inc[s]++;
	my_slot[p] = s + 1; my_inc[p] = inc[s]; STORES(true)
}

inline forget(p) {
	my_slot[p] = 0; my_inc[p] = 0; STORES(false);
	count_stale(p)
}

inline take_lock() {
	lock_slot = my_slot[p]; lock_inc = my_inc[p]; handed = false
}

proctype System(byte p) {
	byte r;			/* the slot that the system recovers */
	/*
	 * slot + 1: the successor in sg_unlock(); during a wait, the system that does not take the
	 * lock
	 */
	byte next, next_inc;
	bool done, wants, waited, left;

boot:	{
		if
		:: atomic { my_slot[p] -> goto idle }
		:: atomic { !my_slot[p] -> goto join }
		fi;

declared_dead:	/* the system is unmounted, and mounted again */
		atomic { forget(p); done = false; waited = false; wants = false; r = 0; next = 0; next_inc = 0 };
join:
		if
		:: d_step { state[0] == FREE -> take_slot(0) }
		:: d_step { state[1] == FREE -> take_slot(1) }
		:: d_step { state[2] == FREE -> take_slot(2) }
		:: atomic {
				state[0] != FREE && state[1] != FREE && state[2] != FREE &&
				(TAKEABLE(0) || TAKEABLE(1) || TAKEABLE(2));
				if
				:: TAKEABLE(0) -> r = 0
				:: TAKEABLE(1) -> r = 1
				:: TAKEABLE(2) -> r = 2
				fi;
				state[r] = RECOVERING; by[r] = r + 1; by_inc[r] = inc[r] + 1;
				my_slot[p] = r + 1; my_inc[p] = inc[r] + 1; STORES(true);
				goto replay
			}
		fi;
		introduce();
		atomic { STORES(false); goto idle };

idle:		/* sg_maintain(), and the users' operations */
		if
		:: atomic { RECOVERABLE(0) -> r = 0; goto recover }
		:: atomic { RECOVERABLE(1) -> r = 1; goto recover }
		:: atomic { RECOVERABLE(2) -> r = 2; goto recover }
		:: atomic { !done -> wants = true; goto lock }
		:: atomic { !MINE -> goto declared_dead }
#ifdef REACH
		:: d_step { MINE && named_n && !linked && N_FREE -> link_inode() }; goto idle
#endif
		:: atomic { done && MINE && LINKED && ALL_WELL(0) && ALL_WELL(1) && ALL_WELL(2) -> goto leave }
		fi;

recover:	/* sg_recover_slot() */
		if
		:: d_step {
				RECOVERABLE(r) ->
				state[r] = RECOVERING; by[r] = my_slot[p]; by_inc[r] = my_inc[p]
			}
		:: atomic { !RECOVERABLE(r) -> r = 0; goto recovered }
		fi;
#ifdef LEASE
		look_at_own_slot();
#endif
replay:		/* sg_tx_replay() */
#ifdef MUTANT_RELEASE_FIRST
		atomic { state[r] = FREE };
#endif
		if
		:: atomic { area_head[r] -> assert(BEING_RECOVERED); word_a = area_val[r] };
#ifdef REACH
			store_inode(r);
#endif
			d_step { assert(BEING_RECOVERED); word_b = area_val[r]; name_inode(r) };
			d_step {
				assert(BEING_RECOVERED);
				area_head[r] = false; area_val[r] = 0; forget_inode(r)
			}
		:: !area_head[r]
		fi;
		d_step {
			assert(BEING_RECOVERED);
			STORES(false);
			state[r] = FREE; by[r] = 0; by_inc[r] = 0
		};
		if
		:: atomic { my_slot[p] == r + 1 -> r = 0; my_slot[p] = 0; my_inc[p] = 0; goto join }
		:: atomic { my_slot[p] != r + 1 -> r = 0 }
		fi;
recovered:
		if
		:: atomic { wants -> goto lock }
		:: atomic { !wants -> goto idle }
		fi;

lock:		/* sg_trylock(): GONE stays true, so load and swap can be one step */
		if
		:: atomic { MAY_TAKE && !waited -> take_lock(); goto locked }
		:: atomic { MAY_TAKE && waited -> take_lock(); goto got }
		:: d_step {
			!MAY_TAKE ->
			waiters = waiters | (1 << (my_slot[p] - 1)); waited = true; WAIT(true)
		}
		fi;
		if
		:: atomic { MAY_TAKE -> take_lock(); goto got }
		:: atomic {	/* handed to a system that does not take it */
				!MAY_TAKE && handed -> count_in_vain(); next = lock_slot; take_lock();
				CLEARS(true)
			};
#ifndef MUTANT_STALE_BIT
			d_step { waiters = waiters & ~(1 << (next - 1)); CLEARS(false) };
#endif
			atomic { next = 0; goto got }
		:: atomic { !(waiters & (1 << (my_slot[p] - 1))) -> goto lock }
		:: atomic { RECOVERABLE(0) -> r = 0; goto recover }
		:: atomic { RECOVERABLE(1) -> r = 1; goto recover }
		:: atomic { RECOVERABLE(2) -> r = 2; goto recover }
		:: atomic { !MINE -> goto declared_dead }
		fi;
got:
		atomic { waiters = waiters & ~(1 << (my_slot[p] - 1)); waited = false; WAIT(false) };
locked:
#ifdef LEASE
#ifdef MUTANT_DEAD_UNLOCK
		if
		:: MINE
		:: !MINE;
			d_step { lock_slot = 0; lock_inc = 0; handed = false };
			goto declared_dead
		fi;
#endif
		look_at_own_slot();
#endif
		/* sg_tx_commit(): make_valid, apply, make_invalid, release */
		atomic {
			/* checks that both words have the last committed values */
			assert(HOLDS && !word_a && !word_b);
			d_step {
				OLDER(word_a); OLDER(word_b); OLDER_IN(0); OLDER_IN(1); OLDER_IN(2);
				area_val[my_slot[p] - 1] = 0; area_head[my_slot[p] - 1] = true;
				make_inode(my_slot[p] - 1)
			}
		};
		d_step { assert(HOLDS); word_a = area_val[my_slot[p] - 1] };
#ifdef REACH
		store_inode(my_slot[p] - 1);
#endif
		d_step {
			assert(HOLDS); word_b = area_val[my_slot[p] - 1];
			name_inode(my_slot[p] - 1)
		};
#ifdef MUTANT_NEW_UNLOCKED_FIRST
		d_step { unlock_inode() };
#endif
#ifndef MUTANT_UNLOCK_FIRST
		d_step { assert(HOLDS); area_head[my_slot[p] - 1] = false; forget_inode(my_slot[p] - 1) };
#endif
#ifdef REACH
		d_step { unlock_inode() };
#endif
		d_step {	/* sg_unlock(): the next live waiter in turn */
			assert(HOLDS);
			next = my_slot[p] % N;
			if
			:: WAITS_FOR(next) -> next = next + 1
			:: else -> next = (next + 1) % N; next = (WAITS_FOR(next) -> next + 1 : 0)
			fi;
			next_inc = (next -> inc[(next -> next - 1 : 0)] : 0)
		};
		d_step {
			lock_slot = next; lock_inc = next_inc; handed = (next != 0);
			next = 0; next_inc = 0; done = true; wants = false; STORES(false)
		};
#ifdef MUTANT_UNLOCK_FIRST
		area_head[my_slot[p] - 1] = false;
#endif
		goto idle;

leave:
		if
		:: atomic { !MINE -> goto declared_dead }
#ifdef MUTANT_PLAIN_LEAVE
		:: MINE;	/* checks first, then stores */
			d_step { state[my_slot[p] - 1] = FREE; left = true; running[p] = false }
#else
		:: d_step { MINE -> state[my_slot[p] - 1] = FREE; left = true; running[p] = false }
#endif
		fi;
		false
	} unless { !running[p] };
#ifdef REBOOT
	if
	:: atomic {
			!left && BOOTS(p) ->
			running[p] = true; done = false; waited = false; wants = false; r = 0; next = 0; next_inc = 0; goto boot
		}
	:: atomic { left || !BOOTS(p) -> r = 0; next = 0; next_inc = 0; done = false; wants = false; waited = false }
	fi;
#else
	atomic { r = 0; next = 0; next_inc = 0; done = false; waited = false; wants = false; left = false };
#endif
end:	false
}

/* The first to die is system 0: systems and slots are symmetric here. */
#ifdef ALL_AT_ONCE
#define MAY_DIE(q)	(deaths && deaths < DEATHS)
#else
#define MAY_DIE(q)	(deaths < DEATHS && (deaths || (q) == 0))
#endif

inline kill(p) {
	d_step { MAY_DIE(p) && running[p] -> deaths++; running[p] = false; forget(p) }
}

proctype Killer() {
end:	do
	:: kill(0)
	:: kill(1)
	:: kill(2)
#ifdef ALL_AT_ONCE
	:: d_step {
		!deaths -> deaths++;
		running[0] = false; running[1] = false; running[2] = false;
		forget(0); forget(1); forget(2)
	}
#endif
	od
}

#define PAUSES(q, s)	(MAY_DIE(q) && IS_AT(q, s) && !storing[q])
#ifdef MUTANT_GUARD_OF_THE_LAST
#define GUARDED(s)	(state[s] == LIVE || BY_ITSELF(s))
#else
#define GUARDED(s)	(state[s] == LIVE)
#endif
#define ENDED(q, s)	(!running[q] && NAMED(q, s))

inline fence(s) {
	if
	:: d_step { state[s] == LIVE && !LIVES(s) -> state[s] = DEAD }
	:: d_step {
		BY_ITSELF(s) && !JOINS(0, s) && !JOINS(1, s) && !JOINS(2, s) ->
		state[s] = DEAD; by[s] = 0; by_inc[s] = 0
	}
#ifdef LEASE
	:: d_step {
		state[s] == LIVE && (PAUSES(0, s) || PAUSES(1, s) || PAUSES(2, s)) ->
		deaths++; state[s] = DEAD
	}
#endif
#ifdef NAMES
	:: d_step {
		GUARDED(s) && (ENDED(0, s) || ENDED(1, s) || ENDED(2, s)) ->
		assert(!LIVES(s));
		assert(!(BY_ITSELF(s) && (JOINS(0, s) || JOINS(1, s) || JOINS(2, s))));
		state[s] = DEAD
	}
#endif
	fi
}

proctype Fencer() {
end:	do
	:: fence(0)
	:: fence(1)
	:: fence(2)
	od
}

init {
	atomic {
		d_step {
			my_slot[0] = 1; my_slot[1] = 2; my_slot[2] = 3;
			my_inc[0] = 1; my_inc[1] = 1; my_inc[2] = 1;
#ifdef NAMES
			named[0] = 1; named[1] = 1; named[2] = 1;
			machine[1] = 1; machine[2] = 2
#endif
		};
		run Killer(); run Fencer(); run System(0); run System(1); run System(2)
	}
}
