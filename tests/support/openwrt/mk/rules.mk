# In place of OpenWrt's rules.mk, package.mk and meson.mk: what the packages of a Makefile say.
SHELL:=/bin/sh
PKG_BUILD_DIR:=/nowhere/build
PKG_INSTALL_DIR:=/nowhere/install
