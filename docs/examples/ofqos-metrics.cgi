#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ofqos-metrics.cgi - the switch's metrics over HTTP
#
# For any web server that runs CGI programs; on OpenWrt's uhttpd copy it to /www/cgi-bin/metrics.
# DPCTL_SWITCH names a switch that does not listen at the usual socket.  The program must be allowed
# to use the switch's socket (ofdatapath --socket-group).  docs/reference/metrics.md says more.
case "$HTTP_ACCEPT" in
*application/openmetrics-text*)
    format=openmetrics type='application/openmetrics-text; version=1.0.0; charset=utf-8' ;;
*)
    format=prometheus type='text/plain; version=0.0.4; charset=utf-8' ;;
esac
if metrics=$(dpctl --timeout 5 metrics format=$format 2>&1); then
    printf 'Content-Type: %s\r\n\r\n%s\n' "$type" "$metrics"
else
    printf 'Status: 503 Service Unavailable\r\nContent-Type: text/plain\r\n\r\n%s\n' "$metrics"
fi
