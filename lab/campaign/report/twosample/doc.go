// Package twosample compares two independent samples by ranks.
//
// In: two slices of finite numbers. Out: the Mann-Whitney U test and the
// Hodges-Lehmann shift with its interval. Neither assumes a distribution: token
// rates under loss have none that has a name.
package twosample
