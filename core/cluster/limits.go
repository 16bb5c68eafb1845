package cluster

// limitsAreRoom tells that victims of a set may lie on other parcels than its target, where a share limit lacks room
// (MD-18).
const limitsAreRoom = true
