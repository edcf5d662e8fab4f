// Package packaging holds what installs the exporter: a systemd unit, the
// Debian package around it, and manifests for Kubernetes.
//
// In: the binary, alerts, dashboards, docs. Out: files for package managers.
// There is no code but tests: they build the package twice, install it in a
// bare Debian, run the unit's own command there, and remove it.
package packaging
