/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring with several readers, some of which die (docs/channels.md, 2 and 3; uapi/ringword.h).
 *
 * The model has READERS readers and a sequence of writers, one of which has the lock at a time. The
 * writers are one process here, which may die in a record and continues as the next writer. The
 * ring has SIZE grains; RECORDS records of one grain pass through it. A record's content is its
 * position. sem.pml models the lock and the wake-up of sleepers. Here a process that waits for room
 * is blocked until the count has grown.
 *
 * Checked: a reader sees a complete record, from its first load until it releases the record. No
 * record arrives twice. A claim counts as lost exactly if its reader died with it. The writer
 * always continues (otherwise the model reports a deadlock).
 *
 *   DEATHS  number of readers that die, at any point
 *   SINGLE  the form for one reader
 *
 * Memory is sequentially consistent here. On x86 only a load may overtake an earlier store. Locked
 * instructions store the cell and set ASKED before the following loads.
 *
 * check: RECORDS=4 READERS=2
 * check: RECORDS=3 READERS=2 DEATHS=1
 * check: RECORDS=3 READERS=1 DEATHS=1 SINGLE
 * check: SIZE=1 RECORDS=3 READERS=2 DEATHS=1
 * long: RECORDS=3 READERS=2 DEATHS=2
 * long: RECORDS=4 READERS=2 DEATHS=1
 * mutant: CLAIM_UNCHECKED RECORDS=4 READERS=2
 * mutant: CLAIM_BLINDLY RECORDS=3 READERS=2
 * mutant: FREED_BY_COUNT RECORDS=4 READERS=2
 * mutant: ZERO_IS_NONE RECORDS=3 READERS=2
 * mutant: CELLS_FIRST RECORDS=4 READERS=2
 * mutant: FREED_EARLY RECORDS=3 READERS=1
 * mutant: NO_HELP RECORDS=3 READERS=2 DEATHS=1
 * mutant: SWEPT_ALIVE RECORDS=3 READERS=2 DEATHS=1
 * mutant: LOOK_THEN_ASK RECORDS=3 READERS=1
 * mutant: TOLD_BEFORE_FREED SIZE=1 RECORDS=3 READERS=1
 * mutant: CELL_KEPT RECORDS=4 READERS=2
 * mutant: HEAD_FIRST RECORDS=3 READERS=1 SINGLE
 * mutant: TAIL_FIRST RECORDS=2 READERS=1
 */
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef SIZE
#define SIZE	2
#endif

#define NONE	0
#define TRIES	1
#define CLAIMED	2

byte data[SIZE];		/* the position of the record + 1; 0: an incomplete record */
byte head, tail, freed;
byte head_cell = READERS;	/* no reader */
byte cell_pos[READERS], cell_how[READERS];
byte room;			/* a count */
bool asked;

/* For the checks only */
byte deaths, ended, found;
bool dead[READERS], swept[READERS], has[READERS], came[RECORDS];
#ifdef MUTANT_FREED_BY_COUNT
byte consumed;
#endif

#ifdef MUTANT_ZERO_IS_NONE
#define USED(i)		(cell_how[i] && cell_pos[i])
#else
#define USED(i)		cell_how[i]
#endif

/* Without readers, a writer may wait forever. */
#define WAIT		if :: room > seen :: deaths == READERS -> goto stuck fi

/* One locked instruction, or one load or store, each. */
#define STEP		d_step

proctype Reader(byte r) {
	byte pos, other, other_pos;
	bool tells;

look:	if
	:: atomic { head < tail -> pos = head }
#ifndef MUTANT_CELL_KEPT
	/* after a failed claim, the reader releases its cell before it waits for a record */
	:: atomic { head == tail && cell_how[r] -> goto back }
	:: atomic { head == RECORDS && !cell_how[r] -> ended++; goto done }
#else
	:: atomic { head == RECORDS -> ended++; goto done }
#endif
	:: atomic { deaths < DEATHS -> deaths++; goto die }
	fi;
#ifdef SINGLE
#ifdef MUTANT_HEAD_FIRST
	STEP { head = pos + 1; head_cell = r; has[r] = true };
	STEP { cell_pos[r] = pos; cell_how[r] = CLAIMED };
#else
	STEP { cell_pos[r] = pos; cell_how[r] = CLAIMED };
	if
	:: STEP { head = pos + 1; head_cell = r; has[r] = true }
	:: atomic { deaths < DEATHS -> deaths++; goto die }
	fi;
#endif
#else
	STEP { cell_pos[r] = pos; cell_how[r] = TRIES };
#ifndef MUTANT_CLAIM_UNCHECKED
	if
	:: atomic { head != pos -> goto look }
	:: head == pos
	:: atomic { deaths < DEATHS -> deaths++; goto die }
	fi;
#endif
	assert(data[pos % SIZE] == pos + 1);
#ifndef MUTANT_NO_HELP
	/* the head that this reader has loaded: if it has moved since, the swap below fails */
	STEP {
		other = READERS;
		if
		:: head == pos && head_cell != r -> other = head_cell
		:: else -> skip
		fi
	};
	if
	:: other < READERS ->
		STEP { other_pos = cell_pos[other]; tells = cell_how[other] == TRIES && other_pos < pos };
		STEP {
			if
			:: tells && cell_how[other] == TRIES && cell_pos[other] == other_pos ->
				cell_how[other] = CLAIMED
			:: else -> skip
			fi;
			tells = false
		}
	:: else -> skip
	fi;
#endif
#ifdef MUTANT_CLAIM_BLINDLY
	STEP { head = pos + 1; head_cell = r; has[r] = true };
#else
	if
	:: atomic { head != pos -> goto look }
	:: STEP { head == pos -> head = pos + 1; head_cell = r; has[r] = true }
	:: atomic { deaths < DEATHS -> deaths++; goto die }
	fi;
#endif
	if
	:: STEP { cell_how[r] = CLAIMED }
	:: atomic { deaths < DEATHS -> deaths++; goto die }
	fi;
#endif
	/* the copy, from its first byte to its last */
	assert(data[pos % SIZE] == pos + 1);
#ifdef MUTANT_FREED_EARLY
	STEP { cell_how[r] = NONE; has[r] = false };
#endif
	if
	:: skip
	:: atomic { deaths < DEATHS -> deaths++; goto die }
	fi;
	STEP {
		assert(data[pos % SIZE] == pos + 1);
		assert(!came[pos]);
		came[pos] = true
	};
#ifdef MUTANT_FREED_BY_COUNT
	consumed++;
#endif
back:	skip;
#ifdef MUTANT_TOLD_BEFORE_FREED
	tells = asked;
#endif
	STEP { cell_how[r] = NONE; has[r] = false };
#ifndef MUTANT_TOLD_BEFORE_FREED
	tells = asked;
#endif
	if
	:: STEP { tells -> tells = false; asked = false; room++ }
	:: !tells
	fi;
	goto look;
die:	dead[r] = true;
	ended++;
done:	skip
}

/* The kernel of a dead reader; or, for a dead system, that of a writer without room. */
proctype Kernel() {
	byte i, seen, seen_cell, pos, how;

	do
	:: i < READERS ->
		/* waits for the first reader that dies */
#ifdef MUTANT_SWEPT_ALIVE
		i = 0;
#else
		if
		:: atomic { dead[0] && !swept[0] -> i = 0 }
#if READERS > 1
		:: atomic { dead[1] && !swept[1] -> i = 1 }
#endif
#if READERS > 2
		:: atomic { dead[2] && !swept[2] -> i = 2 }
#endif
		:: atomic { ended == READERS && found == deaths -> break }
		fi;
#endif
again:		skip;
		STEP { seen = head; seen_cell = head_cell };
		STEP { pos = cell_pos[i]; how = cell_how[i] };
		if
		:: STEP {
			how && cell_how[i] == how && cell_pos[i] == pos ->
			assert(has[i] == (pos < seen && (how == CLAIMED || seen_cell == i)));
			has[i] = false;
			cell_how[i] = NONE
		   }
		:: STEP { !how -> assert(!has[i]) }
		:: atomic { how && (cell_how[i] != how || cell_pos[i] != pos) -> goto again }
		fi;
		STEP { asked = false; room++; swept[i] = true; found++; i = 0 };
#ifdef MUTANT_SWEPT_ALIVE
		break
#endif
	od
}

/* Sets low to the position up to which data may be overwritten. */
inline find_room() {
#ifdef MUTANT_FREED_BY_COUNT
	low = consumed;
#else
#ifdef MUTANT_CELLS_FIRST
	low = RECORDS;
#else
	low = head;
#endif
	i = 0;
	do
	:: STEP {
		i < READERS ->
		if
		:: USED(i) && cell_pos[i] < low && cell_pos[i] >= freed -> low = cell_pos[i]
		:: else -> skip
		fi;
		i++
	   }
	:: i == READERS -> break
	od;
#ifdef MUTANT_CELLS_FIRST
	skip;
	STEP { if :: head < low -> low = head :: else -> skip fi };
#endif
#endif
	freed = low;
	i = 0
}

proctype Writer() {
	byte low, i, seen;

	do
	:: tail == RECORDS -> break
	:: tail < RECORDS ->
again:		if
		:: tail + 1 - freed <= SIZE -> skip
		:: else ->
			find_room();
#ifdef MUTANT_LOOK_THEN_ASK
			if
			:: tail + 1 - freed > SIZE ->
				STEP { seen = room; asked = true };
				WAIT;
				goto again
			:: else -> skip
			fi
#else
			if
			:: tail + 1 - freed > SIZE ->
				STEP { seen = room; asked = true };
				find_room();
				if
				:: tail + 1 - freed > SIZE ->
					WAIT;
					goto again
				:: else -> skip
				fi
			:: else -> skip
			fi
#endif
		fi;
#ifdef MUTANT_TAIL_FIRST
		tail++;
		data[(tail - 1) % SIZE] = 0;
		data[(tail - 1) % SIZE] = tail;
#else
		data[tail % SIZE] = 0;
		if
		:: data[tail % SIZE] = tail + 1;
			tail++
		:: skip		/* the writer has died, and another one has the lock */
		fi
#endif
	od;
stuck:	skip
}

init {
	byte r;

	atomic {
		do
		:: r < READERS -> run Reader(r); r++
		:: r == READERS -> break
		od;
		run Writer();
		run Kernel()
	}
}
