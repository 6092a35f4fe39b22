// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is a module of a kernel, ready to load.
type Module struct {
	Name string
	Data []byte
}

// ModulesInOrder returns the named modules and all modules that they need. Each module comes after
// the modules that it needs. ModulesInOrder skips names without a module file, because the kernel
// has these modules built in, or does not need them.
func (k Kernel) ModulesInOrder(names []string) ([]Module, error) {
	if k.Modules == "" {
		return nil, nil
	}
	files, err := k.moduleFiles()
	if err != nil {
		return nil, err
	}
	var list []Module
	done := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		file, there := files[name]
		if done[name] || !there {
			return nil
		}
		done[name] = true
		data, err := readModule(file)
		if err != nil {
			return err
		}
		needed, err := Depends(data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, other := range needed {
			if err := visit(other); err != nil {
				return err
			}
		}
		list = append(list, Module{name, data})
		return nil
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// moduleFiles finds the file of every module by its name.
func (k Kernel) moduleFiles() (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(k.Modules, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".xz")
		if strings.HasSuffix(name, ".ko") {
			files[strings.ReplaceAll(strings.TrimSuffix(name, ".ko"), "-", "_")] = path
		}
		return nil
	})
	return files, err
}

func readModule(path string) ([]byte, error) {
	if !strings.HasSuffix(path, ".xz") {
		return os.ReadFile(path)
	}
	data, err := exec.Command("xz", "-dc", path).Output()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", path, err)
	}
	return data, nil
}

// Depends reads the names of the modules that a module needs.
func Depends(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("the file has no .modinfo, so it is no kernel module")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for _, field := range strings.Split(string(info), "\x00") {
		if list := strings.TrimPrefix(field, "depends="); list != field {
			return strings.FieldsFunc(strings.ReplaceAll(list, "-", "_"), func(r rune) bool { return r == ',' }), nil
		}
	}
	return nil, nil
}
