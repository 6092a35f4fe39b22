-- SPDX-License-Identifier: Apache-2.0
-- A table of 2000 rows and an index in one transaction, ten transactions of a row each, a query.
create table t(id integer primary key, name text, value real);
create index by_name on t(name);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
	insert into t select i, 'name-' || (i * 7919 % 2000), i * 0.5 from n;
commit;
update t set value = 1 where id = 1;
update t set value = 2 where id = 2;
update t set value = 3 where id = 3;
update t set value = 4 where id = 4;
update t set value = 5 where id = 5;
update t set value = 6 where id = 6;
update t set value = 7 where id = 7;
update t set value = 8 where id = 8;
update t set value = 9 where id = 9;
update t set value = 10 where id = 10;
select count(*), sum(value) from t where name > 'name-5';
