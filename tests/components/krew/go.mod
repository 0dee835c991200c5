module pin

go 1.26.0

require sigs.k8s.io/krew v0.5.0
