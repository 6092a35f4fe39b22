module stargate/e2e

go 1.19
