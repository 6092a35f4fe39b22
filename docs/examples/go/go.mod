module stargate/examples

go 1.19

require stargate/lib v0.0.0

replace stargate/lib => ../../../kernel/lib/go
