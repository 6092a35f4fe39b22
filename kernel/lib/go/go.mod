module stargate/lib

go 1.19
