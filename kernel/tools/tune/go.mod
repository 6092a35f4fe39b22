module stargate/tune

go 1.26.0
